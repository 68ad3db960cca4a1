"""A user's mistake is one sentence on standard error and an exit code, whatever the command."""

import logging
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from holdfast.errors import StoreUnavailable
from holdfast.server.process import run
from holdfast.stores.memory import MemoryStore
from holdfast.testing.servers import holdfast as holdfast_server
from tests.cli.running import holdfast
from tests.postgres import shared_postgres

APP = "from holdfast import worker\n@worker('mistaken')\ndef send(value): ...\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "app.py").write_text(APP)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """`serve` and `worker` set logging up for a process of their own."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


ADMINISTRATIVE = [["copy"], ["token", "create", "ann", "--scope=*"], ["token", "list"], ["token", "revoke", "0" * 12], ["audit"]]


@pytest.mark.parametrize("url", ["sqlite:///typo.db", "lmdb:///typo", "memory://", "memory://typo"])
@pytest.mark.parametrize("command", ADMINISTRATIVE, ids=" ".join)
def test_an_administrative_command_creates_no_store(command: list[str], url: str, tmp_path: Path) -> None:
    where = [url, "sqlite:///new.db"] if command == ["copy"] else [f"--url={url}"]
    answer = holdfast(*command, *where)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "there is no store" in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["app.py"]


def test_without_a_url_the_default_file_is_not_created_either(tmp_path: Path) -> None:
    answer = holdfast("audit", XDG_DATA_HOME=str(tmp_path))
    assert (answer.exit_code, str(tmp_path) in answer.stderr) == (1, True)
    assert "name the store with --url or HOLDFAST_URL" in answer.stderr
    assert "--url or" not in holdfast("audit", HOLDFAST_URL="sqlite:///here.db").stderr, "control: one that was named"
    assert [path.name for path in tmp_path.iterdir()] == ["app.py"]


def test_the_url_of_the_environment_is_used(tmp_path: Path) -> None:
    answer = holdfast("token", "create", "ann", "--scope=*", "--create-store", HOLDFAST_URL="sqlite:///here.db")
    assert answer.exit_code == 0
    assert (tmp_path / "here.db").exists()


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--url=nope://x"], "nope://", 2),
        (["--url=sqlite:///no/such/folder/jobs.db"], "does not exist: create it", 1),
        (["--url=sqlite:///jobs.db?durabilty=power"], "unknown option durabilty", 2),
        (["--url=postgresql://nobody:wrong@{host}/postgres"], "check user and password", 1),
        (["--url=postgresql://holdfast:holdfast-test@{host}/nowhere"], "create it, or name another", 1),
    ],
)
@pytest.mark.parametrize("command", [["serve", "--port=0"], ["worker", "app:send"], ["audit"]], ids=["serve", "worker", "audit"])
def test_a_wrong_url_is_said_in_one_sentence(command: list[str], arguments: list[str], words: str, code: int) -> None:
    needs_server = "{host}" in arguments[0]
    host = shared_postgres().partition("@")[2].partition("/")[0] if needs_server else ""
    missing = command == ["audit"] and "folder" in arguments[0]
    answer = holdfast(*command, *[argument.format(host=host) for argument in arguments])
    assert answer.exit_code == code
    assert ("there is no store" if missing else words) in answer.stderr
    assert "Traceback" not in answer.stderr
    assert isinstance(answer.exception, SystemExit)


@pytest.mark.parametrize("command", [["serve"], ["worker", "app:send"], ["audit"]], ids=["serve", "worker", "audit"])
def test_a_missing_package_is_named_with_its_extra(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    connect = import_module("holdfast.connect")
    connect._class_of.cache_clear()
    monkeypatch.setitem(sys.modules, "holdfast.stores.redis", None)
    answer = holdfast(*command, "--url=redis://localhost")
    assert (answer.exit_code, "pip install 'holdfast[redis]'" in answer.stderr) == (2, True)
    connect._class_of.cache_clear()


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = holdfast("serve", "--url=sqlite:///jobs.db", f"--port={port}")
    assert (answer.exit_code, f"cannot listen on 127.0.0.1, port {port}: address already in use" in answer.stderr) == (1, True)


def test_a_server_waits_for_its_store_and_says_so_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    tries: list[str | None] = []

    def away_at_first(url: str | None) -> MemoryStore:
        tries.append(url)
        if len(tries) < 4:
            raise StoreUnavailable("PostgreSQL database 'jobs' at db1 cannot be reached")
        return MemoryStore()

    monkeypatch.setattr(run, "connect_shared", away_at_first)
    slept: list[float] = []
    run.connect_patiently("postgresql://db1/jobs", slept.append)
    assert (len(tries), len(slept)) == (4, 3)
    assert [record.getMessage() for record in caplog.records] == [
        "the server cannot reach its store, and continues once it can: PostgreSQL database 'jobs' at db1 cannot be reached"
    ]


def test_ctrl_c_ends_a_command_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "connect_patiently", interrupted)
    answer = holdfast("serve")
    assert (answer.exit_code, answer.stderr) == (130, "holdfast serve: interrupted\n")


def test_what_nobody_foresaw_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(run, "run", broken)
    answer = holdfast("serve")
    assert isinstance(answer.exception, RuntimeError)


@pytest.mark.parametrize("older", ["--store", "--to", "--url"])
def test_the_older_names_of_the_url_are_understood(older: str) -> None:
    for command in (["token", "list"], ["serve"], ["audit"], ["worker", "app:send"]):
        answer = holdfast(*command, older, "nope://x")
        assert (answer.exit_code, "nope://" in answer.stderr) == (2, True)
    assert "No such option" not in holdfast("import", "localqueue", "nothing.db", older, "nope://x").stderr


@pytest.mark.parametrize(
    "command", [[], ["copy"], ["token", "create"], ["serve"], ["worker"], ["localqueue", "queue", "process"]], ids=" ".join
)
def test_help_shows_flags_as_flags_and_one_name_for_the_url(command: list[str]) -> None:
    answer = holdfast(*command, "--help")
    assert answer.exit_code == 0
    for words in ("<bool>", "BOOLEAN", "--store ", "--to ", "{", "....."):
        assert words not in answer.stdout


GONE = [
    *("queue ls", "queue put mail 1", "queue stats mail", "job some-id", "job cancel some-id"),
    *("worker ls", "top --once", "watch", "doctor", "export"),
]


@pytest.mark.parametrize("command", GONE)
def test_a_server_that_is_gone_is_said_in_one_sentence(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores.http.store.FIRST_S", 0.0)  # A command tries for five seconds.
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    answer = holdfast(*command.split(), f"--url=http://127.0.0.1:{port}")
    assert (answer.exit_code, answer.stdout, answer.stderr.count("\n")) == (1, "", 1)
    assert f"http://127.0.0.1:{port} cannot be reached" in answer.stderr


@pytest.mark.parametrize("command", ["queue ls", "job some-id", "worker ls", "watch"])
def test_a_server_that_does_not_know_the_token_is_said_in_one_sentence(command: str, server_with_token: str) -> None:
    answer = holdfast(*command.split(), f"--url={server_with_token}", HOLDFAST_TOKEN="hf_0123_wrong")  # noqa: S106 - none that there is
    assert (answer.exit_code, answer.stdout, answer.stderr.count("\n")) == (1, "", 1), answer.stderr
    assert "token" in answer.stderr
    assert "wrong" not in answer.stderr


@pytest.fixture(scope="module")
def server_with_token() -> Iterator[str]:
    with holdfast_server() as running:
        running.token("*")
        yield running.url
