import re
from collections import Counter
from pathlib import Path

import pytest

from tools.unasync import RULES, main, translate

SOURCE = Path("src/holdfast/_async/flows/claiming.py")
TWIN = Path("src/holdfast/_sync/flows/claiming.py")
RULE = {r"\bawait ": ""}


def write(root: Path, path: Path, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def to_sync(text: str) -> str:
    return translate(text, RULES, Counter())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("async def claim(store: AsyncStore) -> None:", "def claim(store: Store) -> None:"),
        ("    return await store.execute(await command())", "    return store.execute(command())"),
        ("    awaited = 1", "    awaited = 1"),
        ("from holdfast._async.flows import claiming", "from holdfast._sync.flows import claiming"),
    ],
)
def test_async_code_is_translated(before: str, after: str) -> None:
    assert to_sync(before) == after


def test_every_rule_compiles() -> None:
    assert all(re.compile(pattern) for pattern in RULES)


def test_a_twin_is_written_formatted_and_says_where_it_comes_from(tmp_path: Path) -> None:
    write(tmp_path, SOURCE, "import asyncio\n\nanswer = (\n    await ask()\n)\n")
    assert main(tmp_path, RULE, []) == 0
    assert (tmp_path / TWIN).read_text() == (
        "# Generated from src/holdfast/_async/flows/claiming.py by tools/unasync.py; do not edit.\n\nanswer = ask()\n"
    )


def test_tests_get_twins_too(tmp_path: Path) -> None:
    write(tmp_path, Path("tests/_async/test_claiming.py"), "await ask()\n")
    assert main(tmp_path, RULE, []) == 0
    assert (tmp_path / "tests/_sync/test_claiming.py").exists()


def test_what_is_up_to_date_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, SOURCE, "await ask()\n")
    main(tmp_path, RULE, [])
    assert (main(tmp_path, RULE, ["--check"]), capsys.readouterr().out) == (0, "")


def test_the_check_shows_the_difference_and_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, SOURCE, "await ask()\n")
    main(tmp_path, RULE, [])
    write(tmp_path, TWIN, "edited()\n")
    assert main(tmp_path, RULE, ["--check"]) == 1
    assert "-edited()\n" in capsys.readouterr().out
    assert (tmp_path / TWIN).read_text() == "edited()\n"


def test_a_missing_twin_fails_the_check(tmp_path: Path) -> None:
    write(tmp_path, SOURCE, "await ask()\n")
    assert main(tmp_path, RULE, ["--check"]) == 1
    assert not (tmp_path / TWIN).exists()


@pytest.mark.parametrize("text", ["old()\n", ""])
def test_a_twin_without_its_source_fails_the_check_and_is_removed(tmp_path: Path, text: str) -> None:
    write(tmp_path, TWIN, text)
    assert main(tmp_path, RULE, ["--check"]) == 1
    assert main(tmp_path, RULE, []) == 0
    assert not (tmp_path / TWIN).exists()


def test_a_rule_that_no_file_needs_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, SOURCE, "await ask()\n")
    assert main(tmp_path, RULE | {"never_there": ""}, []) == 1
    assert "never_there" in capsys.readouterr().err
    assert not (tmp_path / TWIN).exists()


def test_without_async_code_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert main(tmp_path, RULES, ["--check"]) == 0
