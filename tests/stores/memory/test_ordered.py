"""The orders of messages and groups in memory: what is stale in them is bounded by what is current."""

import pytest

from holdfast.stores.memory import ordered
from holdfast.stores.memory.ordered import SPARE, Ordered

CURRENT, CHANGES = 100, 20_000


def most_slots() -> int:
    """How many slots an order has at most, while things in it change places and nobody takes the first."""
    place = dict.fromkeys(range(CURRENT), 0)
    order: Ordered[tuple[int, int]] = Ordered(lambda slot: place[slot[1]] == slot[0])
    most = 0
    for change in range(1, CHANGES):
        place[change % CURRENT] = change
        order.add((change, change % CURRENT))
        most = max(most, len(order._heap))
    assert order.first(CURRENT + 1) == sorted((at, one) for one, at in place.items())
    return most


def test_an_order_keeps_no_more_than_twice_what_is_current() -> None:
    assert most_slots() <= 2 * CURRENT + SPARE


def test_control_an_order_that_is_never_tidied_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "SPARE", 10**9)
    assert most_slots() > 10 * CURRENT
