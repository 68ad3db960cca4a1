"""Fast paths list the fields that they know: a command that uses any other takes the full rules."""

from typing import Any

import pytest
from msgspec import Raw, Struct

from holdfast.commands import Acquire, Change, Claim, Command, Extend, Item, LeaseName, Put, Read, Release, Renew, Settle, Together, Write
from holdfast.commands.plain import uses_only
from holdfast.records import Receipt

ITEM: dict[str, Any] = {"id": "a", "value": Raw(b"1")}


class Grown(Struct):
    """A command to which somebody added a field."""

    queue: str
    limit: int = 1
    added: str | None = None


def test_a_field_that_nobody_thought_of_is_never_dropped() -> None:
    is_plain = uses_only(Grown, "queue", "limit")
    assert is_plain(Grown("jobs", 5))
    assert not is_plain(Grown("jobs", 5, "new"))
    assert uses_only(Grown, "queue", "limit", "added")(Grown("jobs", 5, "new"))


@pytest.mark.parametrize(
    "option",
    [
        {"key": "k"},
        {"if_ready": "keep"},
        {"delay_s": 1.0},
        {"at": 5},
        {"max_attempts": 1},
        {"dead_letter": "dead"},
        {"start_within_s": 1.0},
        {"metadata": Raw(b"{}")},
        {"labels": ("red",)},
    ],
    ids=lambda option: next(iter(option)),
)
def test_every_field_but_the_known_ones_counts(option: dict[str, Any]) -> None:
    is_plain = uses_only(Item, "id", "value", "priority")
    assert is_plain(Item(**ITEM, priority=3))
    assert not is_plain(Item(**ITEM, **option))


def test_a_required_field_has_to_be_known() -> None:
    assert not uses_only(Settle, "to")(Settle([Receipt("jobs", "a", 1)]))


PUT = Put("jobs", [Item(**ITEM)])
CLAIM = Claim("jobs", "worker", 30.0)
SETTLE = Settle([Receipt("jobs", "a", 1)])
NAME = LeaseName(None, "leader", "id")
RENEWAL = Extend([Receipt("jobs", "a", 1)], 30.0, progress=True)
ROW = Write("jobs-steps", [Change("a", value=Raw(b"1"))])
CHECKPOINT = Together([RENEWAL, ROW])


@pytest.mark.parametrize(
    "command",
    [
        PUT,
        Put("jobs", [Item(**ITEM, delay_s=1.0, priority=3, max_attempts=5, dead_letter="dead", metadata=Raw(b"{}"))]),
        Put("jobs", [Item("a", Raw(b"1")), Item("b", Raw(b"2"))]),
        CLAIM,
        SETTLE,
        Settle([Receipt("jobs", "a", 1), Receipt("jobs", "b", 1)], "ready", counts=True, error="broken"),
        Acquire(None, "leader", "me", "id", 30.0),
        Renew([NAME], 30.0),
        Release([NAME]),
        Read("config", ["a", "b"]),
        Write("config", [Change("a", value=Raw(b"1"), expect="absent")]),
        CHECKPOINT,
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_programs_ask_most_is_plain(command: Command[Any]) -> None:
    assert command.plain()


@pytest.mark.parametrize(
    "command",
    [
        Put("jobs", []),
        Put("jobs", [Item(**ITEM, key="k")]),
        Put("jobs", [Item(**ITEM), Item(**ITEM)]),
        Claim("jobs", "worker", 30.0, take=True),
        Claim("jobs", "worker", 30.0, key="k"),
        Settle([]),
        Settle([Receipt("jobs", "a", 1), Receipt("other", "b", 1)]),
        Settle([Receipt("jobs", "a", 1), Receipt("jobs", "a", 1)]),
        Acquire(None, "leader", "me", "id", 30.0, all_or_none=True),
        Renew([NAME, NAME], 30.0),
        Release([NAME], all_or_none=True),
        Read("config"),
        Write("config", [Change("a", "delete"), Change("b", "delete")]),
        Together([ROW, RENEWAL]),
        Together([RENEWAL, ROW, CLAIM]),
        Together([Extend([Receipt("jobs", "a", 1)], 0), ROW]),
        Together([RENEWAL, Write("jobs-steps", [Change("a", "delete"), Change("b", "delete")])]),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_concerns_others_takes_the_full_rules(command: Command[Any]) -> None:
    assert not command.plain()


def test_a_store_names_what_its_fast_path_knows_besides() -> None:
    assert Put("jobs", [Item(**ITEM, key="k")]).plain("key")
    assert Claim("jobs", "worker", 30.0, take=True).plain("take")
    assert not Claim("jobs", "worker", 30.0, take=True, key="k").plain("take")


class GrownClaim(Claim, frozen=True):
    """A claim to which somebody added a field."""

    added: str | None = None


def test_a_new_field_of_a_command_takes_the_full_rules() -> None:
    assert GrownClaim("jobs", "worker", 30.0).plain()
    assert not GrownClaim("jobs", "worker", 30.0, added="new").plain()
