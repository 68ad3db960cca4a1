"""How many statements a command costs, for stores that can count them."""

from collections.abc import Callable

import pytest

from holdfast.commands import Claim, Put, Settle
from holdfast.records import ReturnTo
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, claim_one, item, put, settle
from holdfast.testing.conformance.batches import fill
from holdfast.testing.conformance.factory import Conformance, StoreFactory

ORDINARY = 6


class StatementConformance(Conformance):
    """A command costs a few statements, and a batch as few as one item.

    The factory has a method `statements(store)`, which answers how many were sent so far, begin and commit among them.
    """

    def test_an_ordinary_claim_is_at_most_six_statements_with_begin_and_commit(self, store: Store, factory: StoreFactory) -> None:
        put(store, "a", "b", "c")
        claim(store)
        used = counter(factory, store)(lambda: claim_one(store))
        assert used <= ORDINARY, f"an ordinary claim took {used} statements"

    def test_a_claim_needs_no_more_statements_with_a_hundred_times_as_much_ready(self, store: Store, factory: StoreFactory) -> None:
        count = counter(factory, store)
        fill(store, 1_000)
        claim(store)
        few = count(lambda: claim_one(store))
        fill(store, 100_000)
        many = count(lambda: claim_one(store))
        assert many <= few, f"a claim took {few} statements at 1,000 ready and {many} at 100,000"

    def test_a_put_a_claim_and_a_settle_of_many_take_as_few_statements_as_of_one(self, store: Store, factory: StoreFactory) -> None:
        count = counter(factory, store)
        put(store, "warm")
        settle(store, claim(store))
        one = [
            count(lambda: put(store, "a")),
            count(lambda: claim(store, 1)),
            count(lambda: claim(store, 1)),
        ]
        many = [
            count(lambda: put(store, *[str(number) for number in range(500)])),
            count(lambda: claim(store, 250)),
            count(lambda: claim(store, 250)),
        ]
        assert many[0] <= one[0] + 2, f"a put took {one[0]} statements for one message and {many[0]} for 500"
        assert many[1] <= one[1] + 2, f"a claim took {one[1]} statements for one message and {many[1]} for 250"

    @pytest.mark.parametrize("to", ["done", "ready", "dead"])
    def test_settling_many_takes_as_few_statements_as_settling_one(self, store: Store, factory: StoreFactory, to: str) -> None:
        count = counter(factory, store)
        put(store, *[str(number) for number in range(400)])
        held = claim(store, 301)
        one = count(lambda: settle(store, held[:1], to=to))
        many = count(lambda: settle(store, held[1:], to=to))
        assert many <= one + 3, f"settling took {one} statements for one claim and {many} for 300"

    @pytest.mark.parametrize("expired_to", ["back", "place", "front"])
    def test_expiries_add_statements_a_batch_and_never_a_row(
        self, store: Store, factory: StoreFactory, clock: FakeClock, expired_to: ReturnTo
    ) -> None:
        count = counter(factory, store)
        store.execute(Put(JOBS, [item(str(number), key=f'"{number}"') for number in range(90)]))
        claim(store, 1, lease_s=1, expired_to=expired_to)
        clock.advance(1)
        one = count(lambda: store.execute(Claim(JOBS, lease_s=3_600)))
        claim(store, 80, lease_s=1, expired_to=expired_to)
        clock.advance(1)
        many = count(lambda: store.execute(Claim(JOBS, lease_s=3_600)))
        assert many <= one + 3, f"a claim took {one} statements with one lease ended and {many} with 80"

    def test_burials_add_statements_a_batch_and_never_a_row(self, store: Store, factory: StoreFactory, clock: FakeClock) -> None:
        count = counter(factory, store)
        store.execute(Put(JOBS, [item(str(number), max_attempts=1, dead_letter="graves") for number in range(90)]))
        claim(store, 1, lease_s=1)
        clock.advance(1)
        one = count(lambda: claim(store, 1, lease_s=3_600))
        claim(store, 80, lease_s=1)
        clock.advance(1)
        many = count(lambda: claim(store, 1, lease_s=3_600))
        assert many <= one + 3, f"a claim took {one} statements with one burial and {many} with 80"

    def test_the_history_of_a_message_costs_no_statements(self, store: Store, factory: StoreFactory) -> None:
        count = counter(factory, store)
        put(store, "a")
        claim_and_fail(store)
        few = count(lambda: claim_and_fail(store))
        for _ in range(200):
            claim_and_fail(store)
        many = count(lambda: claim_and_fail(store))
        assert many <= few, f"a claim and a fail took {few} statements at first and {many} after 200 attempts"


def counter(factory: StoreFactory, store: Store) -> Callable[[Callable[[], object]], int]:
    """Counts the statements of what it is given to do."""
    statements: Callable[[Store], int] = factory.statements  # type: ignore[attr-defined]

    def count(act: Callable[[], object]) -> int:
        before = statements(store)
        act()
        return statements(store) - before

    return count


def claim_and_fail(store: Store) -> None:
    held = claim_one(store)
    store.execute(Settle([held.receipt], to="ready", counts=True))
