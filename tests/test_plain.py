"""Fast paths list the fields that they know: a command that uses any other takes the full rules."""

from typing import Any

import pytest
from msgspec import Raw, Struct

from holdfast.commands import Item, Settle
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
    ],
    ids=lambda option: next(iter(option)),
)
def test_every_field_but_the_known_ones_counts(option: dict[str, Any]) -> None:
    is_plain = uses_only(Item, "id", "value", "priority")
    assert is_plain(Item(**ITEM, priority=3))
    assert not is_plain(Item(**ITEM, **option))


def test_a_required_field_has_to_be_known() -> None:
    assert not uses_only(Settle, "to")(Settle([Receipt("jobs", "a", 1)]))
