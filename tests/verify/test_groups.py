"""Groups, limits and rates under processes that are killed and wake up too late, judged by the log alone."""

from pathlib import Path

import pytest
from msgspec import Raw

from holdfast import Queue, Rate
from holdfast.client import ControlPlaneClient
from holdfast.commands import Count, Groups, Item, Names, Put
from holdfast.ids import new_id
from holdfast.stores import Store
from holdfast.testing.claim_log import Claiming, ClaimLog, Ended, claims_past_ends, out_of_order, over_limit, over_rate, used_of_rate
from tests.stores_by_name import url_of
from tests.verify.claimers import LEASE_S
from tests.verify.crowds import crowd, tell

pytestmark = [pytest.mark.verify, pytest.mark.timeout(3600)]

PROCESSES = 32
KILLS = 20
PAUSES = 20
GROUPS = 1_000
BATCH = 10_000

MESSAGES = {"sqlite": 1_000_000, "lmdb": 200_000, "postgres": 200_000, "redis": 200_000}
LIMITED, RATED = 5_000, 750
STORES = list(MESSAGES)


def fill(store: Store, messages: int, groups: int) -> None:
    for start in range(0, messages, BATCH):
        numbers = range(start, min(messages, start + BATCH))
        store.execute(Put("jobs", [Item(new_id(), Raw(b"%d" % n), group=f"g{n % groups}") for n in numbers]))


def left_behind(store: Store) -> tuple[int, int, list[str]]:
    """Messages that are still there, slots that nobody gave back, and groups that nothing needs any more."""
    stats = store.execute(Count("jobs"))
    (settings,) = [one for one in store.execute(Names("queue")).settings if one.name == "jobs"]
    return stats.ready + stats.leased + stats.buffered, settings.live, [lane.name for lane in store.execute(Groups("jobs")).lanes]


@pytest.mark.parametrize("kind", STORES)
def test_strict_groups_keep_their_order_through_kills_and_late_settlements(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    with ControlPlaneClient(url) as client:
        jobs: Queue[int] = Queue("jobs", client=client)
        jobs.configure(groups="strict")
        fill(client.store, MESSAGES[kind], GROUPS)
        log = ClaimLog(client.store, "jobs")
        with crowd(url, 8) as workers:
            workers.work(log, MESSAGES[kind], KILLS, PAUSES)
        done = sum(isinstance(fact, Ended) and fact.how == "done" for fact in log.facts)
        ended = sum(isinstance(fact, Ended) and fact.how == "expired" for fact in log.facts)
        tell(f"{kind}: {done:,} done in order, {ended:,} leases ended, {workers.late:,} settled too late")
        assert out_of_order(log.facts) == []
        assert done == MESSAGES[kind]
        assert workers.late >= MESSAGES[kind] // 500
        assert left_behind(client.store) == (0, 0, [])


@pytest.mark.parametrize("kind", STORES)
def test_limits_are_never_exceeded_and_a_dead_worker_frees_its_slots(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    with ControlPlaneClient(url) as client:
        jobs: Queue[int] = Queue("jobs", client=client)
        jobs.configure(groups="fair", group_limit=2, limit=12)
        fill(client.store, LIMITED, 50)
        log = ClaimLog(client.store, "jobs")
        with crowd(url, PROCESSES, work_ms=2) as workers:
            workers.work(log, LIMITED, KILLS, PAUSES)
        late = claims_past_ends(log.facts, LEASE_S)
        tell(f"{kind}: of {len(late)} ended leases {sum(map(bool, late))} were passed by claims, by {max(late)} at most")
        assert over_limit(log.facts, 12, group_limit=2) == []
        assert left_behind(client.store) == (0, 0, [])
        assert max(late) <= PROCESSES


@pytest.mark.parametrize("kind", STORES)
def test_a_rate_is_kept_to_the_microsecond_and_used(kind: str, tmp_path: Path) -> None:
    # Its burst is the time for which a busy machine may keep all of them from asking.
    url, rate = url_of(kind, tmp_path), Rate(25, per_s=1.0, burst=25)
    with ControlPlaneClient(url) as client:
        jobs: Queue[int] = Queue("jobs", client=client)
        jobs.configure(rate=rate)
        jobs.put_many(range(RATED))
        log = ClaimLog(client.store, "jobs")
        with crowd(url, PROCESSES) as workers:
            workers.work(log, RATED)
        tell(f"{kind}: {used_of_rate(log.facts, rate):.3f} of the rate used, by {sum(isinstance(f, Claiming) for f in log.facts)} claims")
        assert over_rate(log.facts, rate) == []
        assert used_of_rate(log.facts, rate) >= 0.98
