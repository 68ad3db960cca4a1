"""Who waits for a queue with groups and limits: whatever lets something through wakes one, and nothing else does."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.commands import Claim, Configure, Settle
from holdfast.commands.topics import queue_topic
from holdfast.errors import Closed
from holdfast.rates import Rate
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.testing.claim_log import facts_of, over_limit
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, claim_one, ids, put, settle
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.groups import configure
from holdfast.testing.conformance.threads import Doing, all_asleep, together
from holdfast.testing.conformance.waiting import wait_until_closed, waiting_claim
from holdfast.testing.heard import Heard

ONE_EACH: dict[str, Any] = {"groups": "fair", "group_limit": 1}

Ends = Callable[[Store, Message, FakeClock], object]

ENDS: dict[str, Ends] = {
    "settled": lambda store, held, _: settle(store, [held]),
    "released": lambda store, held, _: settle(store, [held], to="ready"),
    "dead": lambda store, held, _: settle(store, [held], to="dead"),
    "expired": lambda _, __, clock: clock.advance(60),
}


class GroupWakeConformance(Conformance):
    """A waiter sleeps while all groups are closed, and not longer."""

    @pytest.mark.parametrize(
        "policies,way",
        [*[(ONE_EACH, way) for way in ENDS], ({"groups": "strict"}, "settled"), ({"limit": 1}, "settled"), ({"limit": 1}, "expired")],
    )
    def test_an_end_that_frees_a_place_wakes_who_waits(self, store: Store, clock: FakeClock, policies: dict[str, Any], way: str) -> None:
        configure(store, **policies)
        put(store, "a", "b", group="g")
        held = claim_one(store, lease_s=60.0)
        waiter = waiting_claim(store)
        ENDS[way](store, held, clock)
        assert len(waiter.result(f"a claim that waited for a place, of which the holder's claim was {way}")) == 1

    def test_a_group_that_is_resumed_wakes_who_waits(self, store: Store) -> None:
        configure(store, groups="fair")
        store.execute(Configure("queue", JOBS, group="g", paused=True))
        put(store, "a", group="g")
        waiter = waiting_claim(store)
        store.execute(Configure("queue", JOBS, group="g", paused=False))
        assert ids(waiter.result("a claim that waited for a paused group")) == ["a"]

    @pytest.mark.parametrize("policies", [{"groups": "fair", "group_rate": Rate(1, per_s=60.0)}, {"rate": Rate(1, per_s=60.0)}])
    def test_a_rate_that_lets_the_next_through_wakes_who_waits(self, store: Store, clock: FakeClock, policies: dict[str, Any]) -> None:
        configure(store, **policies)
        put(store, "a", "b", group="g")
        settle(store, claim(store))
        waiter = waiting_claim(store)
        clock.advance(60)
        assert ids(waiter.result("a claim that waited for a rate")) == ["b"]

    def test_a_put_that_a_rate_lets_through_later_wakes_who_waits(self, store: Store) -> None:
        configure(store, groups="fair", group_rate=Rate(1, per_s=60.0, burst=2))
        put(store, "a", "b", group="g")
        settle(store, claim(store, 2))
        heard = Heard(store, (queue_topic(JOBS),))
        put(store, "c", group="g")
        assert heard.missing({queue_topic(JOBS)}) == set(), "who waits has to learn when the rate lets c through"

    def test_an_end_that_leaves_the_next_to_a_rate_wakes_who_waits(self, store: Store) -> None:
        configure(store, groups="strict", group_rate=Rate(1, per_s=60.0))
        put(store, "a", "b", group="g")
        held = claim_one(store, lease_s=3_600.0)
        heard = Heard(store, (queue_topic(JOBS),))
        settle(store, [held])
        assert heard.missing({queue_topic(JOBS)}) == set(), "who waits for the end of the claim has to learn that the rate lets b through"

    @pytest.mark.parametrize("limit", [3, None])
    def test_an_end_in_a_group_that_was_full_before_its_limit_was_raised_wakes_who_waits(self, store: Store, limit: int | None) -> None:
        configure(store, **ONE_EACH)
        put(store, "a", "b", group="g")
        held = claim_one(store)
        configure(store, group_limit=limit)
        heard = Heard(store, (queue_topic(JOBS),))
        settle(store, [held])
        assert heard.missing({queue_topic(JOBS)}) == set()

    def test_a_put_into_a_full_group_wakes_nobody(self, store: Store) -> None:
        configure(store, **ONE_EACH)
        put(store, "held", group="g")
        claim(store)
        ends: list[str] = []
        waiter = Doing(lambda: until_closed(store, ends))
        # Over a wire the first wait may end because it listens by then: so the first rounds may be disturbed, not all.
        assert any(not woken_by_puts(store, waiter, ends, str(number)) for number in range(10)), "puts into a full group woke who waited"

    @pytest.mark.parametrize("policies", [{"limit": 3}, {**ONE_EACH, "limit": 3}, {"groups": "strict"}])
    def test_many_claimers_at_once_never_pass_a_limit(self, store: Store, policies: dict[str, Any]) -> None:
        configure(store, **policies)
        for group in "abcd":
            put(store, *[f"{group}{number}" for number in range(6)], group=group)

        def work() -> None:
            while messages := store.execute(Claim(JOBS, "worker", 600.0, 2)).messages:
                store.execute(Settle([message.receipt for message in messages]))

        together(*[work for _ in range(8)])
        group_limit = 1 if "groups" in policies else None
        assert over_limit(facts_of(store, JOBS), policies.get("limit"), group_limit=group_limit) == []


def until_closed(store: Store, ends: list[str]) -> None:
    try:
        wait_until_closed(store, queue_topic(JOBS), ends)
    except Closed:
        return


def woken_by_puts(store: Store, waiter: Doing[None], ends: list[str], name: str) -> bool:
    """Whether a wait ended while messages were put into a full group."""
    all_asleep(waiter)
    before = len(ends)
    for number in range(3):
        put(store, f"{name}-{number}", group="g")
        all_asleep(waiter)
    return len(ends) > before
