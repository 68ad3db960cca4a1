"""Keyed messages in memory: put all, then claim and acknowledge them, beside leasedkeyq.

Leases have no end, as is the default there. Costs are CPU time, since nothing here waits for anything; of the largest queue only the
beginning is claimed, while the rest stays.
"""

import asyncio
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec

from msgspec import Raw

from bench.measure import Figure, Run, Timer, at_most, compare, in_fresh_process, timed
from bench.ours import QUEUE, VALUE
from holdfast.commands import Claim, Item, Put, Settle
from holdfast.connect import connect
from holdfast.ids import new_id

SOME = 20_000
"""Small queues are filled and emptied again until so many messages have passed."""

CLAIMED = 100_000
"""How many messages are claimed at most."""


def memory(run: Run) -> Iterator[Figure]:
    contenders: dict[str, Callable[[int], float]] = {"sync": by_calls, "async": by_tasks, "by reference": by_reference}
    if find_spec("leasedkeyq"):
        contenders["leasedkeyq"] = by_leasedkeyq
    for size in run.sizes.memory:
        costs: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in run.rounds(f"memory, {size:,} items", run.sizes.memory_rounds):
            for name, cost in contenders.items():
                costs[name].append(in_fresh_process(cost_us, cost, size))
        for name in sorted(costs.keys() - {"leasedkeyq"}):
            what = f"put+claim+ack, keyed, {size:,} items, {name}"
            if "leasedkeyq" in costs:
                yield compare(what, costs[name], costs["leasedkeyq"], unit="µs", beside="leasedkeyq", wanted=at_most(1.0))
            else:
                yield Figure(what, min(costs[name]), "µs")


def cost_us(cost: Callable[[int], float], size: int) -> float:
    """Of one message, over as many queues as make a run long enough."""
    times = max(1, SOME // size)
    cost(min(size, 1_000))
    return 1e6 * sum(cost(size) for _ in range(times)) / times


def cost_each(putting: Timer, claiming: Timer, size: int) -> float:
    """The CPU time of one message's put, claim and acknowledgement."""
    return putting.cpu_s / size + claiming.cpu_s / min(size, CLAIMED)


def by_calls(size: int) -> float:
    store = connect("memory://")
    execute = store.execute
    with timed() as putting:
        for number in range(size):
            execute(Put(QUEUE, [Item(new_id(), Raw(VALUE), f"k{number}")]))
    with timed() as claiming:
        for _ in range(min(size, CLAIMED)):
            message = execute(Claim(QUEUE, "bench")).messages[0]
            execute(Settle([message.receipt]))
    return cost_each(putting, claiming, size)


def by_reference(size: int) -> float:
    store = connect("memory://?values=reference")
    execute, value = store.execute, {"to": "someone@example.com"}
    with timed() as putting:
        for number in range(size):
            execute(Put(QUEUE, [Item(new_id(), value, f"k{number}")]))  # type: ignore[arg-type] # by reference it may be anything
    with timed() as claiming:
        for _ in range(min(size, CLAIMED)):
            message = execute(Claim(QUEUE, "bench")).messages[0]
            execute(Settle([message.receipt]))
    return cost_each(putting, claiming, size)


def by_tasks(size: int) -> float:
    return asyncio.run(_by_tasks(size))


async def _by_tasks(size: int) -> float:
    store = connect("memory://").for_tasks()
    execute = store.execute
    with timed() as putting:
        for number in range(size):
            await execute(Put(QUEUE, [Item(new_id(), Raw(VALUE), f"k{number}")]))
    with timed() as claiming:
        for _ in range(min(size, CLAIMED)):
            message = (await execute(Claim(QUEUE, "bench"))).messages[0]
            await execute(Settle([message.receipt]))
    return cost_each(putting, claiming, size)


def by_leasedkeyq(size: int) -> float:
    return asyncio.run(_by_leasedkeyq(size))


async def _by_leasedkeyq(size: int) -> float:
    queue = import_module("leasedkeyq").LeasedKeyQueue()
    value = {"to": "someone@example.com"}
    with timed() as putting:
        for number in range(size):
            await queue.put(f"k{number}", value)
    with timed() as claiming:
        for _ in range(min(size, CLAIMED)):
            _, _, lease = await queue.get()
            await queue.ack(lease)
    return cost_each(putting, claiming, size)
