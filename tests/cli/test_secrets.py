"""Passwords and tokens: no command prints them, and none passes them on where `ps` shows them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Queue
from holdfast.cli.app import COMMANDS, load
from tests.cli.running import holdfast
from tests.postgres import own_postgres_url

SECRET = "s3cret"  # noqa: S105 - that is what is looked for
COMMAND = [sys.executable, "-c", "from holdfast.cli import main; main()"]

URLS = [
    f"postgresql://u:{SECRET}@127.0.0.1:1/db",
    f"postgresql://u:{SECRET}@127.0.0.1:bad/db",
    f"postgresql://u:p/{SECRET}@127.0.0.1:1/db",
    f"postgresql://u:{SECRET}@[::1/db",
    f"postgresql://127.0.0.1:1/db?password={SECRET}",
    f"postgresql://127.0.0.1/db?nope={SECRET}",
    f"postgres//u:{SECRET}@host",
    f"redis://:{SECRET}@127.0.0.1:99999",
    f"redis://:p?{SECRET}@127.0.0.1:1",
    f"http://u:{SECRET}@127.0.0.1:1",
    f"https://127.0.0.1:1/?token={SECRET}",
    f"sqlite://u:{SECRET}@host/x",
    f"sqlite:///x.db?key={SECRET}",
    f"mysql://u:{SECRET}@host/db",
    f"u:{SECRET}@host",
]


@pytest.mark.parametrize("url", URLS)
def test_an_error_about_a_url_does_not_show_its_password(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    is_unknown_option = f"={SECRET}" in url and "password" not in url and "token" not in url
    looks = [("queue", "ls", f"--url={url}"), ("copy", url, "sqlite:///new.db")]
    looks += [] if is_unknown_option else [("config", "show", f"--url={url}")]
    for ran in (holdfast(*look) for look in looks):
        assert SECRET not in ran.stdout + ran.stderr
        assert ran.exception is None or isinstance(ran.exception, SystemExit)


@pytest.fixture
def database() -> str:
    """A store behind a password, with a message."""
    url = own_postgres_url()
    with ControlPlaneClient(url) as client:
        Queue.create("mail", client=client).put(1)
    return url


def password_of(url: str) -> str:
    return url.partition("//")[2].partition("@")[0].partition(":")[2]


def shows_password(url: str, *commands: str, **settings: str) -> list[str]:
    """The commands that print the password of the URL."""
    password = password_of(url)
    assert password
    ran = {command: holdfast(*command.split(), **settings) for command in commands}
    return [command for command, one in ran.items() if password in one.stdout + one.stderr]


def test_what_commands_print_of_a_store_does_not_have_its_password(database: str, tmp_path: Path) -> None:
    looking = (
        "queue ls",
        "queue ls x",
        "queue peek nope",
        "dict ls",
        "worker ls",
        "top --once",
        "top --once --json",
        "doctor",
        "check",
        "export",
    )
    assert shows_password(database, *looking, "config show --origin", "watch --timeout-s=0", HOLDFAST_URL=database) == []
    copying = (f"copy {database} sqlite:///{tmp_path}/new.db", f"queue ls --url={database}", f"copy --undo {database}")
    assert shows_password(database, *copying) == []


def test_control_a_command_that_shows_a_password_would_be_found(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.config.without_password", str)
    assert shows_password(database, "config show", "queue ls", HOLDFAST_URL=database) == ["config show"]


ANCESTORS = (
    "me=$$; while [ $me -gt 1 ] && [ $me != $TOP ]; do tr '\\0' ' ' < /proc/$me/cmdline; echo; me=$(cut -d' ' -f4 /proc/$me/stat); done"
)


def arguments_above(database: str, *command: str) -> str:
    """The arguments of all processes between this one and a program that the command runs."""
    environment = {**os.environ, "HOLDFAST_URL": database, "HOLDFAST_TOKEN": SECRET, "TOP": str(os.getpid())}
    program = ["sh", "-c", f"({ANCESTORS}) >&2"]
    ran = subprocess.run([*COMMAND, *command, "--", *program], env=environment, capture_output=True, text=True, check=False)
    assert "holdfast.cli" in ran.stderr, "the processes above the program were looked at"
    return ran.stderr


@pytest.mark.parametrize("command", ["lock run free", "leader run free", "queue exec mail --until-empty --results"])
def test_no_process_that_a_command_starts_has_a_secret_in_its_arguments(command: str, database: str) -> None:
    above = arguments_above(database, *command.split())
    assert (SECRET in above, password_of(database) in above) == (False, False)


def test_control_a_url_on_the_command_line_is_seen_there(database: str) -> None:
    assert password_of(database) in arguments_above(database, "lock", "run", "free", f"--url={database}")


def leaves(command: Any, path: str) -> Iterator[tuple[str, set[str]]]:
    """Each command, and its options."""
    if not hasattr(command, "commands"):
        yield path, {option for param in command.params if param.param_type_name == "option" for option in param.opts}
        return
    for name, part in command.commands.items():
        yield from leaves(part, f"{path} {name}")


def test_no_command_takes_a_secret_as_an_option() -> None:
    """`--token` is a fencing token, a number that is no secret."""
    options = dict(found for name in COMMANDS for found in leaves(load(name), name))
    settling = {f"localqueue queue {name}" for name in ("ack", "release", "dead-letter")}
    assert {path for path, names in options.items() if "--token" in names} == {"lock break", *settling}
    assert [name for names in options.values() for name in names if any(word in name for word in ("password", "secret", "auth"))] == []
