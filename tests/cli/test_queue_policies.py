"""What holds for a queue and for its groups, from the command line."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Queue
from tests.cli.running import holdfast


@pytest.fixture
def url(tmp_path: Path) -> str:
    found = f"sqlite:///{tmp_path}/s.db?durability=process"
    with ControlPlaneClient(found) as client:
        Queue.create("mail", client=client)
    return found


def asked(url: str, *words: str) -> Any:
    ran = holdfast("queue", *words, f"--url={url}", "--json")
    assert ran.exit_code == 0, ran.stderr
    return json.decode(ran.stdout)


def test_settings_of_a_queue_are_changed_shown_and_taken_away(url: str) -> None:
    assert {one for one in asked(url, "configure", "mail").values() if one} == {"mail", "fifo", "pass", "drop"}
    options = "--groups=fair --group-limit=2 --rate=600/1m:5 --order=lifo --aging=10m --maxsize=9 --max-attempts=3"
    more = "--dead-letter-queue=graves --lease=90s --backoff=1s:1h --late-to=dead --keep-done=7d --group-rate=1/1s --limit=4"
    changed = asked(url, "configure", "mail", *options.split(), *more.split())
    assert changed == asked(url, "configure", "mail")
    expected = {
        "groups": "fair",
        "group_limit": 2,
        "order": "lifo",
        "aging_s": 600.0,
        "maxsize": 9,
        "max_attempts": 3,
        "lease_s": 90.0,
        "limit": 4,
    }
    assert expected.items() <= changed.items()
    assert (changed["dead_letter_queue"], changed["late_to"], changed["lease_s"], changed["keep_done_s"]) == (
        "graves",
        "dead",
        90.0,
        604_800.0,
    )
    assert (changed["rate"], changed["group_rate"]["burst"]) == ({"count": 600, "per_s": 60.0, "burst": 5}, 1)
    assert (changed["backoff"]["first_s"], changed["backoff"]["most_s"]) == (1.0, 3600.0)
    gone = asked(url, "configure", "mail", "--unset=rate", "--unset=keep-done", "--unset=order", "--unset=aging", "--unset=groups")
    assert (gone["rate"], gone["keep_done_s"], gone["order"], gone["aging_s"], gone["groups"]) == (None, None, "fifo", None, None)
    assert gone["limit"] == 4


def test_groups_are_listed_limited_paused_and_throttled(url: str) -> None:
    asked(url, "configure", "mail", "--groups=fair")
    with ControlPlaneClient(url) as client:
        for group in ("a", "b"):
            Queue.from_name("mail", client=client).put(1, group=group)
    assert asked(url, "group", "mail", "a", "--limit=2", "--weight=3", "--rate=1/1s", "--pause")["paused"] is True
    found = {one["name"]: one for one in asked(url, "groups", "mail")}
    assert [(one["limit"], one["weight"], one["ready"]) for one in found.values()] == [(2, 3, False), (None, 1, True)]
    assert [one["name"] for one in asked(url, "groups", "mail", "b")] == ["b"]
    resumed = asked(url, "group", "mail", "a", "--resume", "--unset=limit", "--unset=weight")
    assert (resumed["paused"], resumed["limit"], resumed["weight"]) == (False, None, 1)
    assert asked(url, "throttle", "mail", "5m", "--group=a")["throttle_s"] == 300.0
    assert asked(url, "group", "mail", "a")["throttled_until"]
    asked(url, "throttle", "mail", "0s", "--group=a")
    forgotten = asked(url, "group", "mail", "a", "--forget")
    assert (forgotten["rate"], forgotten["throttled_until"]) == (None, None)
    asked(url, "throttle", "mail", "1h")
    assert asked(url, "configure", "mail")["throttled_until"]


def test_text_for_people_and_errors_that_say_what_to_write(url: str) -> None:
    assert "order             fifo" in holdfast("queue", "configure", "mail", f"--url={url}").stdout
    assert holdfast("queue", "groups", "mail", f"--url={url}").stdout == "No groups.\n"
    absent = holdfast("queue", "group", "mail", "a", f"--url={url}")
    assert (absent.exit_code, "Nothing is known of group" in absent.stdout) == (3, True)
    wrong = holdfast("queue", "configure", "mail", "--rate=fast", f"--url={url}")
    assert (wrong.exit_code == 0, "is not a rate: write a number and a time, as in 600/1m" in wrong.stderr) == (False, True)
    unknown = holdfast("queue", "configure", "mail", "--unset=colour", f"--url={url}")
    assert "unknown setting 'colour'; known are groups, group-limit" in unknown.stderr


def test_a_queue_is_made_only_where_that_is_asked_for(url: str) -> None:
    assert holdfast("queue", "configure", "post", f"--url={url}").exit_code == 3
    assert asked(url, "configure", "post", "--create", "--limit=3")["limit"] == 3
