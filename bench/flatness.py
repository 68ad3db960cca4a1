"""What must not grow: the cost of a claim with the backlog, with the attempts of a message and with those who wait."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

from msgspec import Raw

from bench import ours
from bench.measure import Figure, Run, at_most, compare
from bench.ours import LEASE_S, QUEUE, VALUE
from holdfast.commands import Claim, Item, Put, Settle
from holdfast.commands.topics import queue_topic
from holdfast.ids import new_id
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.stores.sqlite.store import SqliteStore

CLAIM = Claim(QUEUE, "bench", LEASE_S)


def backlog(run: Run) -> Iterator[Figure]:
    """A claim at the median, where few and where many messages are ready."""
    stores = {"few": ours.open_file(run.folder / "few.db"), "many": ours.open_file(run.folder / "many.db")}
    ours.fill(stores["few"], run.sizes.few_ready)
    run.tell(f"flatness: putting {run.sizes.many_ready:,} messages")
    ours.fill(stores["many"], run.sizes.many_ready)
    costs: dict[str, list[float]] = {"few": [], "many": []}
    for _ in run.rounds("flatness, backlog"):
        for name, store in stores.items():
            costs[name].append(median([claim_us(store) for _ in range(run.sizes.flat_cycles)]))
    for store in stores.values():
        store.close()
    what, beside = f"claim, {run.sizes.many_ready:,} ready", f"{run.sizes.few_ready:,} ready"
    yield compare(what, costs["many"], costs["few"], unit="µs", beside=beside, wanted=at_most(1.5))


def claim_us(store: Store) -> float:
    """Of a claim; the message is acknowledged and another put in its place outside the measurement."""
    start = time.perf_counter()
    claimed = store.execute(CLAIM)
    elapsed_us = 1e6 * (time.perf_counter() - start)
    store.execute(Settle([claimed.messages[0].receipt]))
    ours.put(store)
    return elapsed_us


def attempts(run: Run) -> Iterator[Figure]:
    """Claim and release, of a message that is new and of one that was claimed and released so many times before."""
    store = ours.open_file(run.folder / "attempts.db")
    run.tell(f"flatness: {run.sizes.attempts:,} attempts")
    old = Claim("old", "bench", LEASE_S)
    store.execute(Put("old", [Item(new_id(), Raw(VALUE))]))
    for _ in range(run.sizes.attempts):
        claim_and_release(store, old)
    costs: dict[str, list[tuple[float, float]]] = {"new": [], "old": []}
    for _ in run.rounds("flatness, attempts"):
        costs["new"].append(medians([claim_new_and_release(store) for _ in range(run.sizes.flat_cycles)]))
        costs["old"].append(medians([claim_and_release(store, old)[:2] for _ in range(run.sizes.flat_cycles)]))
    store.close()
    for place, what in enumerate(("claim", "release")):
        of_old, of_new = ([cost[place] for cost in costs[age]] for age in ("old", "new"))
        yield compare(
            f"{what}, attempt {run.sizes.attempts:,} and on", of_old, of_new, unit="µs", beside="first attempt", wanted=at_most(1.5)
        )


def medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    return median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])


def claim_and_release(store: Store, claim: Claim) -> tuple[float, float, Message]:
    start = time.perf_counter()
    message = store.execute(claim).messages[0]
    claimed = time.perf_counter()
    store.execute(Settle([message.receipt], "ready", "place"))
    return 1e6 * (claimed - start), 1e6 * (time.perf_counter() - claimed), message


def claim_new_and_release(store: Store) -> tuple[float, float]:
    ours.put(store)
    claim_us, release_us, _ = claim_and_release(store, CLAIM)
    ours.cycle(store)
    return claim_us, release_us


def waiters(run: Run) -> Iterator[Figure]:
    """A put, and a claim of what was put, where nobody, one and many others wait on the queue. A put wakes one of them."""
    store = ours.open_file(run.folder / "waiters.db")
    counts = (0, 1, run.sizes.waiters)
    costs: dict[int, list[tuple[float, float]]] = {count: [] for count in counts}
    for _ in run.rounds("flatness, waiters"):
        for count in counts:
            with waiting(store, count):
                costs[count].append(medians([put_and_claim_us(store) for _ in range(run.sizes.flat_cycles)]))
    store.close()
    for place, what in enumerate(("put", "claim")):
        many, one, none = ([cost[place] for cost in costs[count]] for count in reversed(counts))
        named = f"{what}, {run.sizes.waiters:,} waiting"
        yield compare(named, many, one, unit="µs", beside="1 waiting")
        yield compare(named, many, none, unit="µs", beside="nobody waiting", wanted=at_most(1.5))


def put_and_claim_us(store: Store) -> tuple[float, float]:
    item = Put(QUEUE, [Item(new_id(), Raw(VALUE))])
    start = time.perf_counter()
    store.execute(item)
    put_us = 1e6 * (time.perf_counter() - start)
    # Let who was woken wait again: its work is not part of ours.
    time.sleep(0.001)
    start = time.perf_counter()
    message = store.execute(CLAIM).messages[0]
    claim_us = 1e6 * (time.perf_counter() - start)
    store.execute(Settle([message.receipt]))
    return put_us, claim_us


@contextmanager
def waiting(store: Store, count: int) -> Iterator[None]:
    """Tasks of another thread that wait for the queue, and wait again whenever they are woken."""
    ready, stop = threading.Event(), threading.Event()

    async def wait() -> None:
        while not stop.is_set():
            with store.mark(queue_topic(QUEUE)) as mark:
                await tasks.wait(mark, 60.0)
                mark.used()

    async def all_wait() -> None:
        all_tasks = [asyncio.create_task(wait()) for _ in range(count)]
        await asyncio.sleep(0)
        ready.set()
        await asyncio.to_thread(stop.wait)
        for task in all_tasks:
            task.cancel()
        await asyncio.gather(*all_tasks, return_exceptions=True)

    tasks = store.for_tasks()
    thread = threading.Thread(target=lambda: asyncio.run(all_wait()))
    thread.start()
    try:
        if not ready.wait(60.0):
            message = "those who were to wait did not begin to"
            raise TimeoutError(message)
        yield
    finally:
        stop.set()
        thread.join()


def statements(run: Run) -> Iterator[Figure]:
    """How many statements an ordinary command takes, with begin and commit."""
    store = SqliteStore(run.folder / "statements.db")
    ours.put(store)
    ours.cycle(store)
    traced: list[str] = []
    writer = store._writer.connection  # noqa: SLF001 - no store offers to count its statements
    writer.set_trace_callback(traced.append)
    puts = counted(traced, lambda: ours.put(store))
    claimed: list[Message] = []
    claims = counted(traced, lambda: claimed.extend(store.execute(CLAIM).messages))
    settles = counted(traced, lambda: store.execute(Settle([claimed[0].receipt])))
    writer.set_trace_callback(None)
    store.close()
    yield Figure("statements of a claim", claims, "", wanted=at_most(6, "ours"))
    yield Figure("statements of a put", puts, "")
    yield Figure("statements of an acknowledgement", settles, "")


def counted(traced: list[str], do: Callable[[], object]) -> int:
    traced.clear()
    do()
    return len(traced)
