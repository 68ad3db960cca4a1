"""Commits that tasks share: what is large has one to itself, and takes turns with what is small."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.commands import Browse, Command, Count, Put, Together
from holdfast.commands.request import Request
from holdfast.commands.sizes import LARGE
from holdfast.stores.async_batches import REST, REST_MOST_S, Gatherer
from holdfast.stores.async_files import READERS, ThreadedStore
from holdfast.stores.group_commit import Job
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.conformance.asking import item
from holdfast.testing.conformance.threads import PATIENCE_S


class Slow(SqliteStore):
    """Begins with nothing before it is told to, and remembers what shared a commit."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, durability="process")
        self.may_begin = threading.Event()
        self.shared: list[list[str]] = []

    def run(self, jobs: list[Job]) -> None:
        self.may_begin.wait()
        self.shared.append([job.command.queue for job in jobs])  # type: ignore[attr-defined]
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
    assert slow.shared == [["first"], ["large-1"], ["small-1", "small-2"], ["large-2"]]


class Batches:
    """Takes what a gatherer hands over, at moments of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.taken: list[list[Job]] = []
        self.has_more = asyncio.Event()
        self._deliver: Callable[[], object] = lambda: None

    def submit(self, jobs: list[Job], deliver: Callable[[], object]) -> None:
        self.taken.append(jobs)
        self._deliver = deliver
        self.has_more.set()

    async def done_after(self, seconds: float) -> None:
        """Let the batch at hand take so long, and the gatherer go on."""
        self.now += seconds
        self._deliver()
        await settled()


async def settled() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


@pytest.mark.anyio
@pytest.mark.parametrize(("took_s", "rests_s"), [(0.05, 0.05 * REST), (60.0, REST_MOST_S)])
async def test_while_small_commands_come_a_large_one_rests_longer_than_it_took_and_not_for_long(took_s: float, rests_s: float) -> None:
    batches = Batches()
    gatherer = Gatherer(asyncio.get_running_loop(), batches.submit, lambda: batches.now)
    large, second, small = Job(Put("large", [])), Job(Put("second", [])), Job(Put("small", []))
    gatherer.ask(large, is_large=True)
    await settled()
    gatherer.ask(second, is_large=True)
    gatherer.ask(small, is_large=False)
    await batches.done_after(took_s)
    await batches.done_after(rests_s - 0.1)
    assert batches.taken == [[large], [small]], "the second did not rest"
    gatherer.ask(small, is_large=False)
    await settled()
    await batches.done_after(0.1)
    assert batches.taken == [[large], [small], [small], [second]]


@pytest.mark.anyio
async def test_a_large_command_that_takes_no_longer_than_small_ones_does_not_rest() -> None:
    batches = Batches()
    gatherer = Gatherer(asyncio.get_running_loop(), batches.submit, lambda: batches.now)
    large, second, small = Job(Put("large", [])), Job(Put("second", [])), Job(Put("small", []))
    gatherer.ask(small, is_large=False)
    await settled()
    gatherer.ask(large, is_large=True)
    await batches.done_after(1.0)
    gatherer.ask(small, is_large=False)
    gatherer.ask(second, is_large=True)
    await batches.done_after(1.0)
    await batches.done_after(0.1)
    assert batches.taken[1:] == [[large], [small], [second]]


@pytest.mark.anyio
async def test_large_commands_among_themselves_do_not_rest() -> None:
    batches = Batches()
    gatherer = Gatherer(asyncio.get_running_loop(), batches.submit, lambda: batches.now)
    jobs = [Job(Put(str(number), [])) for number in range(3)]
    for job in jobs:
        gatherer.ask(job, is_large=True)
    await settled()
    for _ in range(2):
        await batches.done_after(1.0)
    assert batches.taken == [[job] for job in jobs]


@pytest.mark.anyio
async def test_a_large_command_that_rests_leaves_by_itself() -> None:
    batches = Batches()
    gatherer = Gatherer(asyncio.get_running_loop(), batches.submit, lambda: batches.now)
    gatherer.ask(Job(Put("large", [])), is_large=True)
    await settled()
    gatherer.ask(Job(Put("second", [])), is_large=True)
    gatherer.ask(Job(Put("small", [])), is_large=False)
    await batches.done_after(0.001)
    await batches.done_after(0.0)
    assert len(batches.taken) == 2
    batches.has_more.clear()
    batches.now += 1.0
    await asyncio.wait_for(batches.has_more.wait(), PATIENCE_S)
    assert len(batches.taken) == 3


def asked_by(whose: str, queue: str) -> Job:
    return Job(Put(queue, []), Request(whose))


@pytest.mark.anyio
async def test_a_caller_rests_for_its_own_large_commands_and_no_other_does() -> None:
    batches = Batches()
    gatherer = Gatherer(asyncio.get_running_loop(), batches.submit, lambda: batches.now)
    first, second, other = asked_by("eager", "first"), asked_by("eager", "second"), asked_by("other", "other")
    small = asked_by("small", "small")
    gatherer.ask(first, is_large=True)
    await settled()
    gatherer.ask(second, is_large=True)
    gatherer.ask(other, is_large=True)
    gatherer.ask(small, is_large=False)
    for _ in range(2):
        await batches.done_after(1.0)
    assert batches.taken == [[first], [small], [other]], "the other waited for the first's rest"


@pytest.mark.anyio
async def test_callers_take_turns_with_their_large_commands() -> None:
    batches = Batches()
    gatherer = Gatherer(asyncio.get_running_loop(), batches.submit, lambda: batches.now)
    eager = [asked_by("eager", str(number)) for number in range(3)]
    other = asked_by("other", "other")
    for job in (*eager, other):
        gatherer.ask(job, is_large=True)
    await settled()
    for _ in range(3):
        await batches.done_after(1.0)
    assert batches.taken == [[eager[0]], [other], [eager[1]], [eager[2]]]


@pytest.mark.anyio
async def test_a_large_command_that_is_withdrawn_does_not_leave() -> None:
    batches = Batches()
    gatherer = Gatherer(asyncio.get_running_loop(), batches.submit, lambda: batches.now)
    kept, withdrawn = asked_by("a", "kept"), asked_by("b", "withdrawn")
    for job in (withdrawn, kept):
        gatherer.ask(job, is_large=True)
    assert gatherer.withdraw(withdrawn)
    assert not gatherer.withdraw(withdrawn)
    await settled()
    assert batches.taken == [[kept]]


class SlowToRead(SqliteStore):
    """Answers no read of much before it is told to."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, durability="process")
        self.may_answer = threading.Event()

    def _read(self, command: Command[Any]) -> Any:
        if isinstance(command, Count):
            self.may_answer.wait(PATIENCE_S)
        return super()._read(command)


@pytest.mark.anyio
async def test_nobody_waits_for_what_reads_much(tmp_path: Path) -> None:
    slow = SlowToRead(tmp_path / "store.db")
    store = slow.for_tasks()
    counts = [asyncio.create_task(store.execute(Count("jobs"))) for _ in range(READERS)]
    step = asyncio.create_task(store.execute(Together([Count("jobs")])))
    await store.execute(Put("jobs", [item("a")]))
    assert len((await store.execute(Browse("jobs"))).messages) == 1
    assert not any(task.done() for task in (*counts, step))
    slow.may_answer.set()
    assert [(await count).ready for count in counts] == [1] * READERS
    assert [one.ready for one in await step] == [1]
    await store.aclose()
