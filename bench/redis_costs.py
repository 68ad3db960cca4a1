"""What our Redis store costs beside raw scripts: in batches, with several workers, and for leases."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection

import redis

from bench.measure import Child, Figure, Rates, Run, at_least, by_cpu, compare, interleave, rates_of
from bench.networked import OurQueue
from bench.ours import LEASE_S
from bench.raw_redis import RawQueue
from holdfast.commands import Acquire, LeaseName, Release, Renew
from holdfast.connect import connect
from holdfast.ids import new_id

SIZES = (1, 10, 100)
WORKERS = (1, 4, 16)


def measure(queue: OurQueue | RawQueue, size: int, times: int) -> Rates:
    """Messages a second, put and then claimed and acknowledged."""
    return rates_of("put", times, lambda: queue.put(size), size) | rates_of("claim+ack", times, lambda: queue.cycle(size), size)


def batches(run: Run, url: str) -> Iterator[Figure]:
    """One client, 1, 10 and 100 messages at a time."""
    ours, raw = OurQueue(url), RawQueue(url)
    for size in SIZES:
        times = max(2, run.sizes.messages // (4 if size == 1 else size))
        contenders = {"ours": partial(measure, ours, size, times), "raw": partial(measure, raw, size, times)}
        rates = interleave(run, f"batches of {size}", contenders)
        for what in ("put", by_cpu("put"), "claim+ack", by_cpu("claim+ack")):
            wanted = at_least(0.6) if "CPU" not in what else None
            yield compare(f"{what}, {size} at a time", rates["ours"][what], rates["raw"][what], wanted=wanted)
    ours.close()
    raw.close()


def workers(run: Run, url: str) -> Iterator[Figure]:
    """Processes that put, claim and acknowledge, one message at a time."""
    for number in WORKERS:
        rates: dict[str, list[float]] = {"ours": [], "raw": []}
        for _ in run.rounds(f"{number} workers", run.sizes.process_rounds):
            for kind, found in rates.items():
                crew = [Child(cycle_for, kind, url, run.sizes.process_s) for _ in range(number)]
                found.append(sum(child.answer() for child in crew))
                for child in crew:
                    child.end()
        yield compare(f"put+claim+ack, {number} workers", rates["ours"], rates["raw"], wanted=at_least(0.6))


def cycle_for(answers: Connection, kind: str, url: str, seconds: float) -> None:
    """Put, claim and acknowledge for so long; say how often a second."""
    queue: OurQueue | RawQueue = OurQueue(url) if kind == "ours" else RawQueue(url)
    end, done, begun = time.perf_counter() + seconds, 0, time.perf_counter()
    while time.perf_counter() < end:
        queue.put(1)
        queue.cycle(1)
        done += 1
    answers.send(done / (time.perf_counter() - begun))
    queue.close()


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
