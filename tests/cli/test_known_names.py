"""A queue or dict that does not exist is an error of its own, on a file and through a server; and nothing is made under its name."""

from collections.abc import Iterator

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Dict, Queue
from holdfast.testing.servers import HoldfastServer
from holdfast.testing.servers import holdfast as holdfast_server
from tests.cli.running import holdfast

COMMANDS = {
    "stats": "",
    "rates": "",
    "peek": "",
    "browse": "",
    "dead": "",
    "explain": "some-id",
    "pause": "",
    "resume": "",
    "redrive": "",
    "cancel": "some-id",
    "purge": "--yes",
    "configure": "",
    "throttle": "0s",
    "groups": "",
    "group": "a",
    "claim": "",
}
DICT_COMMANDS = {"ls": "", "get": "mode", "delete": "mode"}


@pytest.fixture(scope="module")
def server() -> Iterator[HoldfastServer]:
    with holdfast_server() as running:
        yield running


@pytest.fixture(scope="module", params=["sqlite", "http"])
def url(request: pytest.FixtureRequest, server: HoldfastServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    found = server.url if request.param == "http" else f"sqlite:///{tmp_path_factory.mktemp('known')}/s.db?durability=process"
    with ControlPlaneClient(found) as client:
        Queue.create("mail", client=client)
        emptied = Dict[int].from_name("settings", client=client)
        emptied.put("mode", 1)
        emptied.delete("mode")
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_about_a_queue_that_does_not_exist_ends_with_three_and_makes_none(command: str, url: str) -> None:
    ran = holdfast("queue", command, "mial", *COMMANDS[command].split(), f"--url={url}")
    assert (ran.exit_code, ran.stdout, "did you mean 'mail'?" in ran.stderr) == (3, "", True), ran.stderr
    assert ran.stderr.startswith(f"holdfast queue {command}: there is no queue 'mial' in ")
    assert [one["name"] for one in json.decode(holdfast("queue", "ls", f"--url={url}", "--json").stdout)] == ["mail"]


@pytest.mark.parametrize("command", DICT_COMMANDS)
def test_a_command_about_a_dict_that_does_not_exist_ends_with_three_and_makes_none(command: str, url: str) -> None:
    ran = holdfast("dict", command, "setings", *DICT_COMMANDS[command].split(), f"--url={url}")
    assert (ran.exit_code, ran.stdout) == (3, ""), ran.stderr
    assert ran.stderr.startswith(f"holdfast dict {command}: there is no dict 'setings' in ")
    assert "did you mean 'settings'?" in ran.stderr
    assert [one["name"] for one in json.decode(holdfast("dict", "ls", f"--url={url}", "--json").stdout)] == ["settings"]


def test_control_a_dict_without_entries_is_listed_as_one(url: str) -> None:
    ran = holdfast("dict", "ls", "settings", f"--url={url}")
    assert (ran.exit_code, ran.stdout) == (0, "No entries.\n")


def test_dead_letters_are_not_redriven_into_a_queue_that_does_not_exist(url: str) -> None:
    ran = holdfast("queue", "redrive", "mail", "--to-queue=nowhere", f"--url={url}")
    assert (ran.exit_code, "there is no queue 'nowhere'" in ran.stderr, "queue ls" in ran.stderr) == (3, True, True)


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"peek", "explain", "group", "claim", "cancel"}))
def test_control_of_a_queue_that_exists_they_end_with_zero(command: str, url: str) -> None:
    assert holdfast("queue", command, "mail", *COMMANDS[command].split(), f"--url={url}").exit_code == 0


def test_a_token_that_may_not_look_at_names_does_what_it_may() -> None:
    with holdfast_server() as running:
        token = running.token("queue:mail:manage")
        Queue.create("mail", client=ControlPlaneClient.on(running.store))
        paused = holdfast("queue", "pause", "mail", f"--url={running.url}", HOLDFAST_TOKEN=token)
        looked = holdfast("queue", "stats", "mail", f"--url={running.url}", HOLDFAST_TOKEN=token)
    assert (paused.exit_code, looked.exit_code, "may not" in looked.stderr or "allow" in looked.stderr) == (0, 1, True), looked.stderr
