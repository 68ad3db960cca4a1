"""`holdfast schedule`: every command, for people and as JSON, with exit codes that a script can trust."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Queue, Schedule
from holdfast._sync.flows.schedule_book import schedule_of
from holdfast.schedules.definition import OPTIONS
from holdfast.stores.sqlite.store import SqliteStore
from tests.cli.running import holdfast
from tests.sentinel_databases import until


@pytest.fixture
def url(tmp_path: Path) -> str:
    SqliteStore(tmp_path / "s.db").close()
    return f"sqlite:///{tmp_path}/s.db"


def test_one_is_added_listed_shown_paused_resumed_run_and_removed(url: str) -> None:
    store = f"--url={url}"
    added = holdfast("schedule", "add", "report", "0 3 * * *", "--queue=reports", '--value={"kind": "daily"}', "--tz=Europe/Vienna", store)
    assert (added.exit_code, "Schedule report is saved; it runs next at" in added.stdout) == (0, True), added.stderr
    (listed,) = json.decode(holdfast("schedule", "list", "--json", store).stdout)
    assert (listed["name"], listed["rule"], listed["tz"], listed["queue"]) == ("report", "0 3 * * *", "Europe/Vienna", "reports")
    assert "active" in holdfast("schedule", "list", store).stdout
    assert "served by     nobody" in holdfast("schedule", "show", "report", store).stdout
    assert json.decode(holdfast("schedule", "show", "report", "--json", store).stdout) == listed
    assert holdfast("schedule", "pause", "report", "--reason=moving", store).stdout == "Schedule report is paused.\n"
    assert "paused: moving" in holdfast("schedule", "list", store).stdout
    assert holdfast("schedule", "resume", "report", store).exit_code == 0
    put = json.decode(holdfast("schedule", "run-now", "report", "--json", store).stdout)
    with ControlPlaneClient(url) as client:
        assert [message.id for message in Queue.from_name("reports", client=client).browse()] == [put["id"]]
    assert holdfast("schedule", "delete", "report", store).stdout == "Schedule report is removed.\n"
    assert json.decode(holdfast("schedule", "list", "--json", store).stdout) == []


def test_each_option_of_a_schedule_can_be_given(url: str) -> None:
    given = {
        "tz": ("Europe/Vienna", "Europe/Vienna"),
        "overlap": ("allow", "allow"),
        "catch_up": ("all", "all"),
        "catch_up_within": ("12h", 43_200.0),
        "jitter_s": ("3", 3.0),
        "starts_at": ("2026-03-01T08:00+01:00", 1_772_348_400_000_000),
        "ends_at": ("2027-03-01T08:00+01:00", 1_803_884_400_000_000),
        "key": ("nightly", '"nightly"'),
        "priority": ("4", 4),
        "max_attempts": ("2", 2),
        "dead_letter_queue": ("failed", "failed"),
        "start_within": ("10m", 600.0),
        "metadata": ('{"by":"ann"}', {"by": "ann"}),
        "label": ("night", ["night"]),
        "group": ("shop", "shop"),
    }
    names = {"catch_up_within": "catch_up_within_s", "start_within": "start_within_s", "label": "labels"}
    assert {names.get(name, name) for name in given} == OPTIONS
    options = [f"--{name.replace('_', '-')}={text}" for name, (text, _) in given.items()]
    added = holdfast("schedule", "add", "report", "0 3 * * *", "--queue=reports", *options, f"--url={url}")
    assert added.exit_code == 0, added.stderr
    with ControlPlaneClient(url) as client:
        stored = schedule_of(client.store, "report")
    assert stored is not None
    kept = {**stored.entry.put, **json.decode(json.encode(stored.entry)), "dead_letter_queue": stored.entry.put["dead_letter"]}
    assert {name: kept[names.get(name, name)] for name in given} == {name: value for name, (_, value) in given.items()}


@pytest.mark.parametrize("command", [("show",), ("delete",), ("pause",), ("resume",), ("run-now",)])
def test_one_that_there_is_not_is_an_error_of_its_name(url: str, command: tuple[str]) -> None:
    missing = holdfast("schedule", *command, "nightly", f"--url={url}")
    assert (missing.exit_code, "nightly" in missing.stderr) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "x", "61 * * * *", "--queue=q"), "bad minute"),
        (("add", "x", "* * * * *", "--queue=q", "--value=daily"), "a text needs quotes"),
        (("add", "x", "* * * * *", "--queue=q", "--overlap=often"), "overlap"),
        (("add", "x", "* * * * *", "--queue=q", "--starts-at=2026-03-01"), "needs a time zone"),
        (("add", "x", "* * * * *", "--queue=q", "--ends-at=soon"), "not a moment"),
        (("next", "* * * * *", "--tz=Mars/Base"), "no time zone"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_saved(url: str, arguments: tuple[str, ...], says: str) -> None:
    store = () if arguments[0] == "next" else (f"--url={url}",)
    refused = holdfast("schedule", *arguments, *store)
    assert (refused.exit_code, says in refused.stderr) == (2, True), refused.stderr
    assert json.decode(holdfast("schedule", "list", "--json", f"--url={url}").stdout) == []


def test_a_rule_can_be_tried_without_a_store() -> None:
    tried = holdfast("schedule", "next", "30 2 * * *", "--tz=Europe/Vienna", "-n", "3", "--json")
    assert len(json.decode(tried.stdout)) == 3
    assert len(holdfast("schedule", "next", "every 300 s").stdout.splitlines()) == 5


def test_a_process_puts_what_is_due_until_it_is_told_to_stop(url: str) -> None:
    with ControlPlaneClient(url) as client:
        Schedule("beat", "every 1 s", ("jobs", 1), overlap="allow", client=client).save()
        command = [sys.executable, "-c", "from holdfast.cli import main; main()", "schedule", "run", f"--url={url}"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            until(lambda: Queue.from_name("jobs", client=client).length() > 0)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def test_what_code_declares_is_saved_in_a_deploy_and_the_rest_removed(tmp_path: Path, url: str) -> None:
    def deploy(*rules: str, prune: bool = False) -> str:
        lines = [f"app.schedule('every 60 s', send, 1).options(name={rule!r})" for rule in rules]
        (tmp_path / "shop.py").write_text(
            "\n".join(["from holdfast import Tasks", "app = Tasks('shop')", "@app.task", "def send(n: int) -> None: ...", *lines])
        )
        program = [sys.executable, "-c", "from holdfast.cli import main; main()", "schedule", "sync", "shop:app", f"--url={url}"]
        return subprocess.run([*program, *(["--prune"] if prune else [])], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert deploy("a", "b") == "2 saved.\n"
    assert deploy("a") == "1 saved; not declared any more: b (--prune removes them).\n"
    assert deploy("a", prune=True) == "1 saved, 1 removed.\n"
    with ControlPlaneClient(url) as client:
        assert [one.name for one in Schedule.list(client=client)] == ["a"]
