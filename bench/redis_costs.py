"""What our Redis store costs: queues beside raw scripts, leases beside the library's own lock."""

from collections.abc import Callable, Iterator

import redis

from bench.cells import VERBS, Pair, compare_cells
from bench.crews import Crew
from bench.measure import Figure, Rates, Run, at_least, compare, interleave, rates_of
from bench.networked import OurQueue
from bench.ours import LEASE_S
from bench.raw_redis import RawQueue
from holdfast.commands import Acquire, LeaseName, Release, Renew
from holdfast.connect import connect
from holdfast.ids import new_id


def cells(run: Run, url: str) -> Iterator[Figure]:
    """Put, then claim and acknowledge, so many at a time by so many processes."""
    most = max(run.sizes.crews)
    with Crew(OurQueue, url, most) as ours, Crew(RawQueue, url, most) as raw:
        yield from compare_cells(run, Pair("raw", ours, raw, run.sizes.process_rounds, at_least(0.6)), list(VERBS))


def leases(run: Run, url: str) -> Iterator[Figure]:
    """Take, renew and give back a lease, beside the lock of the library."""
    store, client = connect(url), redis.Redis.from_url(url)

    def ours() -> None:
        lease_id = new_id()
        store.execute(Acquire(None, "bench", "bench", lease_id, LEASE_S))
        store.execute(Renew([LeaseName(None, "bench", lease_id)], LEASE_S))
        store.execute(Release([LeaseName(None, "bench", lease_id)]))

    def theirs() -> None:
        lock = client.lock("lock", timeout=LEASE_S)
        lock.acquire()
        lock.extend(LEASE_S, replace_ttl=True)
        lock.release()

    times = run.sizes.peer_cycles
    contenders: dict[str, Callable[[], Rates]] = {
        "ours": lambda: rates_of("cycle", times, ours),
        "redis-py Lock": lambda: rates_of("cycle", times, theirs),
    }
    rates = interleave(run, "leases", contenders)
    yield compare("acquire+renew+release", rates["ours"]["cycle"], rates["redis-py Lock"]["cycle"], beside="redis-py Lock")
    store.close()
    client.close()
