"""`holdfast queue`: every command, for people and as JSON, with exit codes that a script can trust."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Queue
from holdfast.stores.sqlite.store import SqliteStore
from tests.cli.running import holdfast


@pytest.fixture
def url(tmp_path: Path) -> str:
    SqliteStore(tmp_path / "s.db").close()
    return f"--url=sqlite:///{tmp_path}/s.db"


def decoded(*arguments: str) -> Any:
    ran = holdfast(*arguments, "--json")
    assert ran.exit_code == 0, ran.stderr
    return json.decode(ran.stdout)


def test_a_message_is_put_claimed_acknowledged_and_counted(url: str) -> None:
    put = decoded("queue", "put", "mail", '{"to": "ann"}', "--key=ann", "--max-attempts=3", "--label=vip", url)
    assert put["created"] is True
    assert decoded("queue", "peek", "mail", url)["id"] == put["id"]
    claimed = json.decode(holdfast("queue", "claim", "mail", "--claimer=shell", url).stdout)
    assert (claimed["value"], claimed["key"], claimed["attempts"]) == ({"to": "ann"}, "ann", 1)
    assert "shell" in holdfast("queue", "browse", "mail", "--state=leased", url).stdout
    assert decoded("queue", "stats", "mail", url)["holders"] == {"shell": 1}
    assert [decoded("queue", "stats", "mail", f"--label={label}", url)["leased"] for label in ("vip", "other")] == [1, 0]
    assert decoded("queue", "ack", claimed["claim_id"], url) == {"acknowledged": 1}
    (listed,) = decoded("queue", "ls", url)
    assert (listed["name"], listed["ready"], listed["leased"]) == ("mail", 0, 0)


def test_a_put_into_no_store_says_how_to_create_it(tmp_path: Path) -> None:
    url = f"--url=sqlite:///{tmp_path}/new.db"
    ran = holdfast("queue", "put", "mail", "1", url)
    assert (ran.exit_code, "or create the store with --create-store" in ran.stderr) == (1, True)
    assert "--create-store" not in holdfast("queue", "peek", "mail", url).stderr, "control: a command that has no such option"
    assert holdfast("queue", "put", "mail", "1", url, "--create-store").exit_code == 0


def test_a_lost_claim_is_exit_code_four_and_nothing_to_claim_is_three(url: str) -> None:
    holdfast("queue", "put", "mail", "1", url)
    claim_id = json.decode(holdfast("queue", "claim", "mail", url).stdout)["claim_id"]
    assert holdfast("queue", "release", claim_id, url).exit_code == 0
    assert holdfast("queue", "ack", claim_id, url).exit_code == 4
    assert holdfast("queue", "release", claim_id, url).exit_code == 4
    assert holdfast("queue", "purge", "mail", "--yes", url).exit_code == 0
    nothing = holdfast("queue", "claim", "mail", url)
    assert (nothing.exit_code, nothing.stdout) == (3, "")
    assert holdfast("queue", "peek", "mail", url).exit_code == 3
    assert holdfast("queue", "explain", "mail", "absent", url).exit_code == 3


def test_a_failure_makes_a_dead_letter_that_is_found_explained_and_redriven(url: str) -> None:
    put = decoded("queue", "put", "mail", "1", "--max-attempts=1", url)
    claim_id = json.decode(holdfast("queue", "claim", "mail", url).stdout)["claim_id"]
    assert holdfast("queue", "release", claim_id, "--error=no route", url).exit_code == 0
    assert [one["id"] for one in decoded("queue", "dead", "mail", "--error=route", url)] == [put["id"]]
    assert "no route" in holdfast("queue", "explain", "mail", put["id"], url).stdout
    assert decoded("queue", "rates", "mail", url)["buried"] == 1
    assert "failed share" in holdfast("queue", "rates", "mail", "--groups", url).stdout
    assert holdfast("queue", "rates", "mail", "--tasks", url).stdout == "Nothing happened.\n"
    assert holdfast("queue", "rates", "mail", "--tasks", "--groups", url).exit_code == 2
    assert decoded("queue", "redrive", "mail", put["id"], url)["count"] == 1
    assert decoded("queue", "cancel", "mail", put["id"], url)["count"] == 1


@pytest.fixture
def letters(url: str) -> str:
    """Three dead letters, of two groups, with two kinds of errors."""
    with ControlPlaneClient(url.removeprefix("--url=")) as client:
        mail = Queue[Any].create("mail", client=client)
        for to, group, error in (("ann", "a", "OSError: no route"), ("bob", "b", "OSError: down"), ("eve", "b", "KeyError: 'no route'")):
            mail.put({"to": to}, key=to, group=group, max_attempts=1)
            claim = mail.claim()
            assert claim is not None
            claim.fail(error=error)
    return url


FOUND = {
    "--error-class=OSError": ["ann", "bob"],
    "--error=no route": ["ann", "eve"],
    "--value=eve": ["eve"],
    "--group=b": ["bob", "eve"],
    "--key-prefix=bo": ["bob"],
    "--newer-than=1h": ["ann", "bob", "eve"],
    "--older-than=1h": [],
}


@pytest.mark.parametrize("option", FOUND)
def test_messages_are_found_redriven_and_removed_by_what_the_options_say(letters: str, option: str) -> None:
    expected = FOUND[option]
    assert [one["value"]["to"] for one in decoded("queue", "dead", "mail", option, letters)] == expected
    assert [one["value"]["to"] for one in decoded("queue", "browse", "mail", "--state=dead", option, letters)] == expected
    assert decoded("queue", "redrive", "mail", option, letters)["count"] == len(expected)
    left = "--state=dead" if option.startswith("--error") or not expected else "--state=ready"
    found = decoded("queue", "cancel", "mail", left, option, letters)["count"]
    assert found == (0 if left == "--state=dead" else len(expected))


def test_a_message_is_put_into_a_group(url: str) -> None:
    put = decoded("queue", "put", "mail", "1", "--group=acme", url)
    assert [one["id"] for one in decoded("queue", "browse", "mail", "--group=acme", url)] == [put["id"]]


def test_lines_of_the_standard_input_are_put_in_order(url: str) -> None:
    lines = "".join(f'{{"n": {number}}}\n' for number in range(2_500))
    command = [sys.executable, "-c", "from holdfast.cli import main; main()", "queue", "put", "bulk", "--json", url]
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    assert json.decode(ran.stdout) == {"queue": "bulk", "count": 2_500}
    assert [one["value"]["n"] for one in decoded("queue", "browse", "bulk", "-n", "3", url)] == [0, 1, 2]


def test_a_line_that_is_not_json_ends_the_command_with_its_number(url: str) -> None:
    command = [sys.executable, "-c", "from holdfast.cli import main; main()", "queue", "put", "bulk", url]
    ran = subprocess.run(command, input="1\nno\n", capture_output=True, text=True, check=False)
    assert (ran.returncode, "line 2 is not JSON" in ran.stderr, "0 messages put before the error" in ran.stderr) == (2, True, True)
    assert decoded("queue", "ls", url) == []


def test_a_paused_queue_hands_nothing_out(url: str) -> None:
    holdfast("queue", "put", "mail", "1", url)
    assert decoded("queue", "pause", "mail", url) == {"queue": "mail", "paused": True}
    assert holdfast("queue", "claim", "mail", url).exit_code == 3
    assert holdfast("queue", "resume", "mail", url).exit_code == 0
    assert holdfast("queue", "claim", "mail", url).exit_code == 0


def test_events_are_one_object_per_line(url: str) -> None:
    holdfast("queue", "put", "mail", "1", url)
    rows = holdfast("queue", "watch", "mail", "--timeout-s=0", url).stdout.splitlines()
    assert [json.decode(row)["event"] for row in rows] == ["put"]


def test_purging_asks_first(url: str) -> None:
    holdfast("queue", "put", "mail", "1", url)
    assert holdfast("queue", "purge", "mail", url).exit_code == 1
    assert decoded("queue", "stats", "mail", url)["ready"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("put", "mail", "daily"), "a text needs quotes"),
        (("put", "mail", "-", "--key=k"), "name one message"),
        (("ack", "nonsense"), "is not a claim id"),
        (("browse", "mail", "--older-than=soon"), "is not a duration"),
        (("cancel", "mail"), "needs ids or a filter"),
    ],
)
def test_what_makes_no_sense_is_refused(url: str, arguments: tuple[str, ...], says: str) -> None:
    holdfast("queue", "put", "mail", "1", url)
    refused = holdfast("queue", *arguments, url)
    assert (refused.exit_code, says in refused.stderr) == (2, True), refused.stderr


def test_a_program_is_run_for_each_message_and_its_exit_code_settles_it(url: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = f'read v; echo "$v $HOLDFAST_QUEUE $HOLDFAST_FENCE" >> {seen}; test "$v" != 2'
    for value in ("1", "2"):
        holdfast("queue", "put", "mail", value, "--max-attempts=1", url)
    command = [sys.executable, "-c", "from holdfast.cli import main; main()", "queue", "exec", "mail", "--until-empty", url, "--"]
    assert subprocess.run([*command, "sh", "-c", script], check=False, env={**os.environ, "HOLDFAST_URL": ""}).returncode == 0
    rows = [row.split() for row in seen.read_text().splitlines()]
    assert [row[:2] for row in rows] == [["1", "mail"], ["2", "mail"]]
    assert all(int(row[2]) > 0 for row in rows)
    (dead,) = decoded("queue", "dead", "mail", url)
    assert "ended with status 1" in dead["last_error"]
    with ControlPlaneClient(url.removeprefix("--url=")) as client:
        assert Queue.from_name("mail", client=client).stats().total == 1
