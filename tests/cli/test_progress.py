"""How far long commands have come: on standard error, if it is no terminal only when asked for."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from typer.testing import CliRunner

from holdfast import ControlPlaneClient, Queue
from holdfast.cli.app import app
from holdfast.cli.progress import ProgressLines

COMMANDS = {
    "queue put new - --url={url}": "messages put: 2\n",
    "queue cancel mail --label=a --url={url}": "removed: 2\n",
    "queue redrive dead --url={url}": "redriven: 1\n",
    "queue purge mail --yes --url={url}": "removing messages: 0\nremoving messages: 2 of 2\n",
    "backup {folder}/backup2 --url={url}": "copying pages: ",
    "restore {url} --from={folder}/backup": "copying bytes: ",
    "check --url={url}": "mail: 3 of 3\n",
    "export {folder}/all2.ndjson --url={url}": "exporting: 0 of 3\n",
    "import {folder}/all.ndjson --url=sqlite:///{folder}/new.db": "importing pages: ",
    "copy {url} sqlite:///{folder}/new.db": "mail: 3 of 3\n",
}


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    url = f"sqlite:///{tmp_path}/s.db"
    with ControlPlaneClient(url) as client:
        Queue[int].create("mail", client=client).put_many([1, 2], labels=("a",))
        dead = Queue[int].create("dead", client=client)
        dead.put(1, max_attempts=1)
        claim = dead.claim()
        assert claim is not None
        claim.fail(error="no route")
    found = {"url": url, "folder": str(tmp_path)}
    for command in ("backup {folder}/backup --url={url}", "export {folder}/all.ndjson --url={url}"):
        assert run(command, found).exit_code == 0
    return found


def run(command: str, places: dict[str, str], *more: str) -> Any:
    return CliRunner().invoke(
        app, [*command.format(**places).split(), *more], prog_name="holdfast", input="1\n2\n", env={"HOLDFAST_URL": None}
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_long_command_tells_how_far_it_is_when_asked_and_prints_json_all_the_same(command: str, places: dict[str, str]) -> None:
    ran = run(command, places, "--progress", "--json")
    assert (ran.exit_code, COMMANDS[command] in ran.stderr) == (0, True), ran.stderr
    json.decode(ran.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_control_unasked_it_writes_nothing_where_there_is_no_terminal(command: str, places: dict[str, str]) -> None:
    ran = run(command, places)
    assert (ran.exit_code, ran.stderr) == (0, "")


def test_there_is_a_line_at_the_beginning_one_each_second_and_one_at_the_end() -> None:
    said: list[str] = []
    now_s = 0.0
    lines = ProgressLines("exporting", said.append, lambda: now_s)
    lines.show(0, 3_000)
    lines.show(1_000, 3_000)
    now_s = 1.0
    lines.show(2_000, 3_000, "mail\x1b[2J")
    lines.show(3_000, 3_000)
    assert said == ["exporting: 0 of 3,000", "mail\\x1b[2J: 2,000 of 3,000"]
    lines.end()
    lines.end()
    assert said[2:] == ["mail\\x1b[2J: 3,000 of 3,000"]
