"""Commits that tasks share: what is large has one to itself, and takes turns with what is small."""

import asyncio
import threading
from pathlib import Path

import pytest

from holdfast.commands import Put
from holdfast.stores.committing import Job
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.stores.threaded import LARGE, ThreadedStore
from holdfast.testing.conformance.asking import item


class Slow(SqliteStore):
    """Begins with nothing before it is told to, and remembers what shared a commit."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, durability="process")
        self.may_begin = threading.Event()
        self.commits: list[list[str]] = []

    def run(self, jobs: list[Job]) -> None:
        self.may_begin.wait()
        self.commits.append([job.command.queue for job in jobs])  # type: ignore[attr-defined]
        super().run(jobs)


@pytest.mark.anyio
async def test_a_small_command_waits_for_one_large_one_at_most(tmp_path: Path) -> None:
    slow = Slow(tmp_path / "store.db")
    store = ThreadedStore(slow)

    async def put(queue: str, count: int) -> None:
        await store.execute(Put(queue, [item(f"{queue}-{number}") for number in range(count)]))

    asks = [asyncio.create_task(put("first", 1))]
    await asyncio.sleep(0)  # It is on its way, and what follows gathers behind it.
    await asyncio.sleep(0)
    asks += [asyncio.create_task(put(queue, LARGE + 1)) for queue in ("large-1", "large-2")]
    asks += [asyncio.create_task(put(queue, LARGE)) for queue in ("small-1", "small-2")]
    await asyncio.sleep(0)
    slow.may_begin.set()
    await asyncio.gather(*asks)
    await store.aclose()
    assert slow.commits == [["first"], ["large-1"], ["small-1", "small-2"], ["large-2"]]
