"""Many messages at once: a batch costs by its size, and a claim does not cost by how much else there is."""

import time

from holdfast.commands import Claim, Put
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, drain, extend, ids, item, move, put, settle, stats
from holdfast.testing.conformance.factory import Conformance

MANY = 100_000
BATCH = 10_000


class BatchConformance(Conformance):
    """Big batches, and big queues."""

    def test_a_batch_as_large_as_allowed_goes_in_and_out(self, store: Store) -> None:
        names = [f"{number:05}" for number in range(BATCH)]
        assert all(put(store, *names).created)
        held = claim(store, BATCH, lease_s=60)
        assert ids(held) == names
        assert all(extend(store, held, 60))
        assert all(settle(store, held, to="ready"))
        again = claim(store, BATCH, lease_s=60)
        assert all(settle(store, again))
        assert stats(store).total == 0

    def test_a_large_batch_is_buried_and_redriven_whole(self, store: Store) -> None:
        put(store, *[str(number) for number in range(BATCH)], max_attempts=1)
        settle(store, claim(store, BATCH), to="ready", counts=True)
        assert stats(store).dead == BATCH
        assert len(move(store, "ready", limit=BATCH)) == BATCH
        assert stats(store).ready == BATCH

    def test_keys_and_copies_work_in_large_batches(self, store: Store) -> None:
        first = [item(f"a{number}", key=f'"{number}"') for number in range(2_000)]
        second = [item(f"b{number}", key=f'"{number}"') for number in range(2_000)]
        store.execute(Put(JOBS, first))
        held = claim(store, 2_000)
        store.execute(Put(JOBS, second))
        assert stats(store).buffered == 2_000
        settle(store, held)
        assert drain(store) == [one.id for one in second]

    def test_a_hundred_thousand_messages_due_at_one_moment_cost_a_claim_little(self, store: Store, clock: FakeClock) -> None:
        fill(store, 1_000, delay_s=60)
        clock.advance(60)
        before = typical_s(store)
        drain(store)
        fill(store, MANY, delay_s=60)
        clock.advance(60)
        first = time.perf_counter()
        assert len(claim(store)) == 1
        first_s = time.perf_counter() - first
        after = typical_s(store)
        # Looking at each of them would cost a hundred times as much; the first claim may also tidy up.
        assert after < 20 * before, f"a claim took {after / before:.0f} times as long with {MANY:,} messages due as with 1,000"
        assert first_s < 200 * max(before, 0.0005), f"the first claim took {first_s:.3f} s, a usual one {before:.6f} s"

    def test_a_hundred_thousand_expired_leases_come_back_a_claim_at_a_time(self, store: Store, clock: FakeClock) -> None:
        fill(store, 20_000)
        while claim(store, BATCH, lease_s=60):
            pass
        clock.advance(60)
        answer = store.execute(Claim(JOBS, lease_s=3_600))
        assert len(answer.messages) == 1
        counted = stats(store)
        assert (counted.ready, counted.leased) == (19_999, 1)


def fill(store: Store, count: int, delay_s: float = 0.0) -> None:
    for start in range(0, count, BATCH):
        names = range(start, min(start + BATCH, count))
        store.execute(Put(JOBS, [item(str(number), delay_s=delay_s) for number in names]))


def typical_s(store: Store) -> float:
    """What one claim takes, the best of some: others use the machine too."""
    taken = []
    for _ in range(30):
        start = time.perf_counter()
        assert len(claim(store)) == 1
        taken.append(time.perf_counter() - start)
    return min(taken)
