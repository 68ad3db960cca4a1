"""Commits that survive a loss of power: one thread, and many callers who share commits."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from statistics import median

from msgspec import Raw

from bench import ours
from bench.measure import Figure, Rates, Run, at_least, compare, interleave, timed
from bench.ours import QUEUE, VALUE
from bench.raw_group import RawGroup, RawTaskGroup
from bench.raw_sqlite import RawQueue
from holdfast.commands import Item, Put
from holdfast.ids import new_id
from holdfast.stores import AsyncStore

THREADS = 16
TASKS = 64


def power(run: Run) -> Iterator[Figure]:
    sizes = run.sizes
    store, raw = ours.open_file(run.folder / "power.db", "power"), RawQueue(run.folder / "raw_power.db", "power")
    grouped = RawQueue(run.folder / "raw_group.db", "power")
    group, tasks = RawGroup(grouped.sql), store.for_tasks()
    rates = interleave(
        run,
        "power",
        {
            "ours": lambda: ours.singles(store, sizes.power_messages, sizes.power_cycles),
            "raw": lambda: raw.singles(sizes.power_messages, sizes.power_cycles),
            "our threads": lambda: in_threads(lambda: ours.put(store), sizes.thread_puts),
            "raw threads": lambda: in_threads(group.put, sizes.thread_puts),
            "our tasks": lambda: asyncio.run(in_tasks(lambda: put_async(tasks), sizes.task_puts)),
            "raw tasks": lambda: asyncio.run(raw_in_tasks(group, sizes.task_puts)),
        },
    )
    group.close()
    store.close()
    one = rates["ours"]["put"]
    yield compare("put, one thread", one, rates["raw"]["put"], wanted=at_least(0.75))
    yield compare("claim+ack, one thread", rates["ours"]["claim+ack"], rates["raw"]["claim+ack"], wanted=at_least(0.75))
    for who, name, times in (("threads", f"{THREADS} threads", 3.0), ("tasks", f"{TASKS} tasks", 8.0)):
        many = rates[f"our {who}"]["put"]
        yield compare(f"put, {name}", many, rates[f"raw {who}"]["put"], beside="raw group commit", wanted=at_least(0.6))
        yield compare(f"put, {name}", many, one, beside="ours, one thread", wanted=at_least(times))
    yield Figure("fsync of the disk, by raw puts", 1e6 / median(rates["raw"]["put"]), "µs")


async def put_async(store: AsyncStore) -> None:
    await store.execute(Put(QUEUE, [Item(new_id(), Raw(VALUE))]))


def in_threads(put: Callable[[], object], each: int) -> Rates:
    start = threading.Barrier(THREADS + 1)

    def work() -> None:
        start.wait()
        for _ in range(each):
            put()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    start.wait()
    with timed() as timer:
        for thread in threads:
            thread.join()
    return {"put": THREADS * each / timer.elapsed_s}


async def in_tasks(put: Callable[[], Awaitable[None]], each: int) -> Rates:
    async def work() -> None:
        for _ in range(each):
            await put()

    with timed() as timer:
        await asyncio.gather(*(work() for _ in range(TASKS)))
    return {"put": TASKS * each / timer.elapsed_s}


async def raw_in_tasks(group: RawGroup, each: int) -> Rates:
    return await in_tasks(RawTaskGroup(group).put, each)
