"""leasedkeyq's operations one by one: the same program on its own queue and on ours, and ours with many who wait and much that is leased.

Costs are CPU time, since nothing here waits for anything; of the largest queue only the beginning is leased, while the rest stays.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bench.measure import Figure, Run, at_most, compare, in_fresh_process

OURS, THEIRS = "holdfast.surfaces.leasedkeyq", "leasedkeyq"
VALUE = {"to": "someone@example.com"}

QUEUES = 20
"""So many small queues are filled and emptied, one after the other."""

SMALL = 10_000

LEASED = 100_000
"""How many items are leased at most."""

Costs = dict[str, float]
"""Microseconds, by operation."""


def operations(run: Run) -> Iterator[Figure]:
    """Put, get, release, take and ack, each by itself."""
    modules = [OURS, *([THEIRS] if find_spec(THEIRS) else [])]
    for size in (run.sizes.memory[0], run.sizes.memory[-1]):
        rounds: dict[str, list[Costs]] = {module: [] for module in modules}
        for _ in run.rounds(f"keyed, {size:,} items", run.sizes.memory_rounds):
            for module in modules:
                rounds[module].append(in_fresh_process(costs_of, module, size))
        for operation in rounds[OURS][0]:
            what, ours = f"{operation}, {size:,} items", [costs[operation] for costs in rounds[OURS]]
            if THEIRS in rounds:
                theirs = [costs[operation] for costs in rounds[THEIRS]]
                yield compare(what, ours, theirs, unit="µs", beside=THEIRS, wanted=at_most(1.0))
            else:
                yield Figure(what, min(ours), "µs")


def flatness(run: Run) -> Iterator[Figure]:
    """Ours, with one and with many who wait for other keys, and with nothing and much that is leased."""
    pairs: dict[str, tuple[Callable[[int], Awaitable[float]], int, int]] = {
        "put, waited for by": (put_while_waiting, 1, run.sizes.waiters),
        "get+ack, leased besides": (get_while_leased, 0, run.sizes.few_ready * 100),
    }
    for what, (cost, few, many) in pairs.items():
        costs: dict[int, list[float]] = {few: [], many: []}
        for _ in run.rounds(f"keyed, {what}", run.sizes.memory_rounds):
            for count in (few, many):
                costs[count].append(in_fresh_process(cost_of, cost, count))
        yield compare(f"{what} {many:,}", costs[many], costs[few], unit="µs", beside=f"{few:,}", wanted=at_most(1.5))


def costs_of(module: str, size: int) -> Costs:
    """The least that each operation took, over as many queues as make a run long enough."""
    make = import_module(module).LeasedKeyQueue
    runs = [asyncio.run(lifetime(make(), size)) for _ in range(QUEUES if size <= SMALL else 1)]
    return {operation: min(costs[operation] for costs in runs) for operation in runs[0]}


async def lifetime(queue: Any, size: int) -> Costs:
    """Fill a queue, lease in order, release, lease by key, acknowledge."""
    keys = [f"k{number}" for number in range(size)]
    some = keys[:LEASED]
    costs: Costs = {}

    async def timed(operation: str, do: Callable[..., Awaitable[Any]], arguments: list[Any], *more: Any) -> list[Any]:
        gc.collect()
        start = time.process_time()
        answers = [await do(argument, *more) for argument in arguments]
        costs[operation] = 1e6 * (time.process_time() - start) / len(arguments)
        return answers

    await timed("put", queue.put, keys, VALUE)
    leased = await timed("get", queue.get, [None] * len(some))
    await timed("release", queue.release, [lease for _, _, lease in leased])
    leased = await timed("take", queue.take, some)
    await timed("ack", queue.ack, [lease for _, _, lease in leased])
    return costs


def cost_of(cost: Callable[[int], Awaitable[float]], count: int) -> float:
    """The least of some runs."""

    async def once() -> float:
        return await cost(count)

    return min(asyncio.run(once()) for _ in range(2))


async def put_while_waiting(count: int) -> float:
    """Of a put, while tasks wait for keys that never come."""
    queue = import_module(OURS).LeasedKeyQueue()
    waiting = [asyncio.create_task(queue.take(f"never-{number}")) for number in range(count)]
    await asyncio.sleep(0)
    start = time.process_time()
    for number in range(5_000):
        await queue.put(f"k{number}", VALUE)
    cost = 1e6 * (time.process_time() - start) / 5_000
    await queue.close()
    await asyncio.gather(*waiting, return_exceptions=True)
    return cost


async def get_while_leased(count: int) -> float:
    """Of a get and its ack, while other items are leased."""
    queue = import_module(OURS).LeasedKeyQueue(default_lease_timeout=3_600.0)
    for number in range(count + 5_000):
        await queue.put(f"k{number}", VALUE)
    kept = [await queue.get() for _ in range(count)]
    start = time.process_time()
    for _ in range(5_000):
        _, _, lease = await queue.get()
        await queue.ack(lease)
    cost = 1e6 * (time.process_time() - start) / 5_000
    assert len(kept) == count  # noqa: S101 - they are leased as long as this runs
    return cost
