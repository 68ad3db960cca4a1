"""A claim that waits in another process: how soon a put wakes it, and what it costs while nothing happens."""

import random
import resource
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import quantiles

from msgspec import Raw, json

from bench import ours
from bench.measure import Child, Figure, Run, at_most, in_fresh_process
from bench.ours import LEASE_S, QUEUE
from holdfast._sync.flows.claiming import claim
from holdfast.commands import Claim, Item, Put, Settle
from holdfast.connect import connect
from holdfast.ids import new_id

WAIT_S = 60.0
STOP = 0


def wake_up(run: Run) -> Iterator[Figure]:
    run.tell(f"wake-up: {run.sizes.wakeups} times")
    path = run.folder / "wakeup.db"
    store = ours.open_file(path, "power")
    waiter = Child(wait_and_claim, path)
    waiter.answer()
    for _ in range(run.sizes.wakeups):
        time.sleep(random.uniform(0.005, 0.02))
        store.execute(Put(QUEUE, [Item(new_id(), Raw(json.encode(time.monotonic_ns())))]))
    time.sleep(0.05)
    store.execute(Put(QUEUE, [Item(new_id(), Raw(json.encode(STOP)))]))
    latencies_ms = waiter.answer()
    waiter.end()
    store.close()
    cuts = quantiles(latencies_ms, n=100, method="inclusive")
    yield Figure("put to claimed in another process, median", cuts[49], "ms", wanted=at_most(5.0, "ours"))
    yield Figure("put to claimed in another process, p99", cuts[98], "ms")


def wait_and_claim(answers: Connection, path: Path) -> None:
    """Claim whatever comes, and say how long ago it was put: the monotonic clock is one for all processes."""
    store = connect(f"sqlite:///{path.absolute()}?durability=power")
    waiting = Claim(QUEUE, "bench", LEASE_S)
    latencies_ms: list[float] = []
    answers.send("ready")
    while messages := claim(store, waiting, WAIT_S):
        now = time.monotonic_ns()
        store.execute(Settle([messages[0].receipt]))
        put_at = json.decode(messages[0].value)
        if put_at == STOP:
            break
        latencies_ms.append((now - put_at) / 1e6)
    answers.send(latencies_ms)
    store.close()


def idle(run: Run) -> Iterator[Figure]:
    run.tell(f"wake-up: idle for {run.sizes.idle_s:g} s")
    path = run.folder / "idle.db"
    store = ours.open_file(path, "power")
    share = in_fresh_process(wait_for_nothing, path, run.sizes.idle_s)
    store.close()
    yield Figure("CPU of a process that waits", 100 * share, "%", wanted=at_most(1.0, "ours"))


def wait_for_nothing(path: Path, seconds: float) -> float:
    """The share of a core that a claim takes that finds nothing for so long."""
    store = connect(f"sqlite:///{path.absolute()}?durability=power")
    waiting = Claim(QUEUE, "bench", LEASE_S)
    claim(store, waiting, 0.05)
    before = resource.getrusage(resource.RUSAGE_SELF)
    claim(store, waiting, seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    store.close()
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / seconds
