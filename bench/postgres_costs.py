"""What our PostgreSQL store costs: queues beside raw statements, leases beside sentinel-coordination."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import psycopg

from bench import raw_postgres, sentinel
from bench.cells import VERBS, Pair, compare_cells
from bench.crews import Crew
from bench.measure import Figure, Rates, Run, at_least, interleave, timed
from bench.networked import OurQueue
from bench.ours import LEASE_S
from holdfast.commands import Acquire, LeaseName, Release, Renew
from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.stores import Store


def cells(run: Run, url: str) -> Iterator[Figure]:
    """Put, then claim and acknowledge, so many at a time by so many processes."""
    raw_postgres.create(url)
    most = max(run.sizes.crews)
    with Crew(OurQueue, url, most) as ours, Crew(raw_postgres.RawQueue, url, most) as raw:
        yield from compare_cells(run, Pair("raw", ours, raw, run.sizes.process_rounds, at_least(0.6)), list(VERBS))


def leases(run: Run, url: str) -> Iterator[Figure]:
    """Take, renew and give back leases, each call by itself."""
    count = run.sizes.swaps
    store = connect(url)
    with psycopg.connect(url) as connection:
        contenders: dict[str, Callable[[], Rates]] = {"ours": partial(lease_round, store, count)}
        if find_spec(sentinel.THEIRS):
            contenders[sentinel.PACKAGE] = sentinel.contender(sentinel.THEIRS, connection, count)
        rates = interleave(run, "leases", contenders, run.sizes.peer_rounds)
    store.close()
    yield from sentinel.figures(rates.pop("ours"), rates.get(sentinel.PACKAGE))


def lease_round(store: Store, count: int) -> Rates:
    """What does one round, as `sentinel.contender` does it, called by the same names."""
    names = [LeaseName(None, f"order_{number}", new_id()) for number in range(count)]
    rates: Rates = {}
    with timed() as timer:
        for name in names:
            store.execute(Acquire(None, name.key, "bench", name.lease_id, LEASE_S))
    rates["acquire"] = count / timer.elapsed_s
    with timed() as timer:
        for name in names:
            store.execute(Renew([name], LEASE_S))
    rates["heartbeat"] = count / timer.elapsed_s
    with timed() as timer:
        for name in names:
            store.execute(Release([name]))
    rates["release"] = count / timer.elapsed_s
    return rates
