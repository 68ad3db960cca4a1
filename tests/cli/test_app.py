import subprocess
import sys

import pytest

from holdfast import __version__
from holdfast.cli import main

EXTRAS = ["aiohttp", "lmdb", "psycopg", "redis", "rich", "tenacity", "typer", "urllib3", "uvicorn"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60)


def holdfast(*arguments: str, before: str = "pass") -> subprocess.CompletedProcess[str]:
    return run("-c", f"import sys; {before}; from holdfast.cli import main; main()", *arguments)


def test_version_is_printed() -> None:
    answer = holdfast("--version")
    assert (answer.returncode, answer.stdout) == (0, f"holdfast {__version__}\n")


def test_version_imports_no_extra() -> None:
    answer = run("-X", "importtime", "-c", "from holdfast.cli import main; main()", "--version")
    imported = {line.rsplit("|", 1)[-1].strip() for line in answer.stderr.splitlines()}
    assert "holdfast.cli" in imported
    assert not imported & {"typer", "click", "rich"}


def test_version_beside_other_arguments_is_printed_too() -> None:
    answer = holdfast("--version", "demo")
    assert (answer.returncode, answer.stdout) == (0, f"holdfast {__version__}\n")


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_a_missing_extra_says_what_to_install(module: str) -> None:
    answer = holdfast("demo", before=f"sys.modules[{module!r}] = None")
    assert answer.returncode == 2
    assert answer.stderr == "The holdfast command needs its extra: pip install 'holdfast[cli]'\n"


def test_another_missing_module_is_not_blamed_on_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["holdfast", "demo"])
    monkeypatch.setitem(sys.modules, "holdfast.cli.app", None)
    with pytest.raises(ModuleNotFoundError, match=r"holdfast\.cli\.app"):
        main()


def test_without_arguments_the_commands_are_listed() -> None:
    answer = holdfast()
    assert "demo" in answer.stdout + answer.stderr


def test_an_unknown_command_is_refused() -> None:
    assert holdfast("no-such-noun").returncode == 2


def test_help_imports_nothing_that_takes_long() -> None:
    """The list of commands needs no store, no server, no table: its time is that of typer alone. `make verify` measures it."""
    answer = run("-X", "importtime", "-c", "from holdfast.cli import main; main()", "--help")
    imported = {line.rsplit("|", 1)[-1].strip() for line in answer.stderr.splitlines()}
    assert "typer" in imported
    assert not imported & {"rich", "asyncio", "sqlite3", "holdfast.stores.sqlite.store", "holdfast.server.app", "holdfast.workers.orders"}


def test_importing_the_package_imports_no_extra() -> None:
    answer = run("-c", f"import holdfast, sys; print(sorted(set({EXTRAS!r}) & set(sys.modules)))")
    assert answer.stdout == "[]\n"
