"""Durable jobs: steps are recorded, sleeps free the worker, signals and children wake it."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import (
    MISSING,
    AsyncJobContext,
    Backoff,
    Bury,
    ChildFailed,
    JobCancelled,
    JobContext,
    JobFailed,
    JobGone,
    Queue,
    StepFailed,
    StepsChanged,
)
from holdfast._sync.flows.working.janitor import Janitor
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.workers.steps._sync.maps import Maps
from holdfast.workers.steps.rows import Report, Row
from tests.workers.durable import Bench

EMPTY: dict[str, Any] = {"steps": [], "signals": []}
AT_ONCE = Backoff(first_s=0.0)


def noted(calls: list[str], name: str, result: str) -> Callable[[], str]:
    """A step that notes that it was done."""

    def step() -> str:
        calls.append(name)
        return result

    return step


@pytest.fixture
def bench() -> Iterator[Bench]:
    clock = FakeClock()
    bench = Bench(MemoryStore(clock=clock), clock)
    yield bench
    bench.client.close()


def test_a_recorded_step_is_not_run_again(bench: Bench) -> None:
    app, calls = bench.tasks(), list[str]()

    @app.task(name="order")
    def order(job: JobContext, id: str) -> list[str]:
        first = job.step("first", noted(calls, "first", f"{id}-1"))
        job.sleep(3600)
        second = job.step("second", noted(calls, "second", f"{id}-2"))
        return [first, second]

    job = order.put("o")
    assert bench.drain(app).done == 0
    assert job.status().state == "sleeping"
    assert [(step.name, step.state) for step in job.steps()] == [("first", "done"), ("sleep", "timer")]
    assert bench.drain(app, delayed=True).done == 1
    assert job.result(timeout_s=0) == ["o-1", "o-2"]
    assert calls == ["first", "second"]
    assert bench.left() == EMPTY


def test_branches_of_an_async_job_replay_in_any_order(bench: Bench) -> None:
    app, calls = bench.tasks(), list[str]()

    async def note(text: str) -> str:
        calls.append(text)
        return text

    @app.task(name="fan")
    async def fan(job: AsyncJobContext) -> list[str]:
        async def chain(name: str, seconds: float) -> str:
            begun = await job.step("begin", note, name)
            await job.sleep(seconds)
            return await job.step("end", note, begun + "!")

        return [*await asyncio.gather(chain("a", 20), chain("b", 10), chain("c", 30))]

    job = fan.put()
    assert bench.drain(app, delayed=True).done == 1
    assert job.result(timeout_s=0) == ["a!", "b!", "c!"]
    assert sorted(calls) == sorted(["a", "b", "c", "a!", "b!", "c!"])
    assert bench.left() == EMPTY


def test_a_signal_wakes_the_job_and_an_early_one_is_kept(bench: Bench) -> None:
    app = bench.tasks()

    @app.task(name="order")
    def order(job: JobContext) -> list[Any]:
        return [job.wait("approved", str), job.wait("approved", str), job.wait("paid", dict)]

    job = order.put()
    job.send("approved", "ann")
    assert bench.drain(app).done == 0
    assert job.status().waiting_for == "signal approved"
    sentence = str(Queue[Any]("default", client=bench.client).explain(job.id))
    assert sentence == "It is a durable job that sleeps, and waits for signal approved."
    assert job.send("approved", "bob", id="1")
    assert not job.send("approved", "bob", id="1")
    assert bench.drain(app).done == 0
    assert job.status().waiting_for == "signal paid"
    job.send("paid", {"sum": 3})
    assert bench.drain(app).done == 1
    assert job.result(timeout_s=0) == ["ann", "bob", {"sum": 3}]
    assert bench.left() == EMPTY
    with pytest.raises(JobGone, match="has ended"):
        job.send("approved", "eve")


def test_a_wait_times_out_and_a_later_signal_is_for_the_next_wait(bench: Bench) -> None:
    app = bench.tasks()

    @app.task(name="order")
    def order(job: JobContext) -> str:
        try:
            return job.wait("approved", str, timeout_s=60)
        except TimeoutError:
            return "late: " + job.wait("approved", str)

    job = order.put()
    assert bench.drain(app, delayed=True).done == 0
    assert (job.status().state, job.status().waiting_for) == ("sleeping", "signal approved")
    job.send("approved", "ann")
    assert bench.drain(app).done == 1
    assert job.result(timeout_s=0) == "late: ann"
    assert bench.left() == EMPTY


def test_a_failed_step_is_tried_again_and_then_fails_in_the_same_way_each_time(bench: Bench) -> None:
    app, calls = bench.tasks(), list[int]()

    def fails() -> None:
        calls.append(1)
        raise ValueError("no")

    @app.task(name="order", max_attempts=1)
    def order(job: JobContext) -> str:
        try:
            job.options(max_attempts=3).step("pay", fails)
        except StepFailed as error:
            job.sleep(60)
            return f"{error.name} {error.type} {error.message}"
        return "paid"

    job = order.put()
    assert bench.drain(app, delayed=True) == type(bench.drain(app))(done=1, failed=0)
    assert job.result(timeout_s=0) == "pay ValueError no"
    assert len(calls) == 3


def test_a_job_whose_step_failed_is_buried_and_goes_on_after_a_retry(bench: Bench) -> None:
    app, calls = bench.tasks(), list[str]()

    def pay() -> str:
        calls.append("pay")
        if calls.count("pay") < 2:
            raise ValueError("no")
        return "paid"

    @app.task(name="order")
    def order(job: JobContext) -> str:
        job.step("begin", lambda: calls.append("begin"))
        return job.options(max_attempts=1).step("pay", pay)

    job = order.put()
    bench.drain(app)
    with pytest.raises(JobFailed, match="step 'pay' failed: ValueError: no"):
        job.result(timeout_s=0)
    assert job.status().state == "dead"
    assert job.retry()
    bench.drain(app)
    assert job.result(timeout_s=0) == "paid"
    assert calls == ["begin", "pay", "pay"]
    assert bench.left() == EMPTY


def test_a_once_step_that_died_is_reconciled_or_buried(bench: Bench) -> None:
    app, found = bench.tasks(), list[str]()
    effects: list[str] = []

    class Died(BaseException):
        pass

    def charge(id: str) -> str:
        effects.append(id)
        if len(effects) == 1:
            raise Died
        return "charged " + id

    def find(id: str) -> Any:
        found.append(id)
        return "found " + id if id in effects else MISSING

    @app.task(name="known")
    def known(job: JobContext, id: str) -> str:
        return job.options(once=True, reconcile=find).step("charge", charge, id)

    @app.task(name="unknown")
    def unknown(job: JobContext, id: str) -> str:
        return job.options(once=True).step("charge", charge, id)

    job = known.put("a")
    bench.drain(app, delayed=True)
    assert (job.result(timeout_s=0), effects, found) == ("found a", ["a"], ["a"])
    effects.clear()
    job = unknown.put("b")
    bench.drain(app, delayed=True)
    assert effects == ["b"]
    assert (job.status().error or "").startswith("ExecutionUnknown: step 'charge'")


def test_changed_code_stops_instead_of_running_a_step_twice(bench: Bench) -> None:
    app, calls, version = bench.tasks(), list[str](), ["old"]

    @app.task(name="order")
    def order(job: JobContext) -> str:
        job.step("pay" if version[0] == "old" else "charge", lambda: calls.append("paid"))
        job.sleep(60)
        return "done"

    job = order.put()
    bench.drain(app)
    version[0] = "new"
    bench.drain(app, delayed=True)
    error = job.status().error or ""
    assert error.startswith("StepsChanged")
    assert "'charge'" in error
    assert "'pay'" in error
    version[0] = "old"
    assert job.retry()
    bench.drain(app, delayed=True)
    assert job.result(timeout_s=0) == "done"
    assert calls == ["paid"]


def test_changed_code_of_an_async_job_stops_too(bench: Bench) -> None:
    app, names = bench.tasks(), ["pay"]

    @app.task(name="order")
    async def order(job: AsyncJobContext) -> None:
        await asyncio.gather(job.step(names[0], int), job.sleep(60))

    job = order.put()
    bench.drain(app)
    names[0] = "charge"
    bench.drain(app, delayed=True)
    assert (job.status().error or "").startswith(StepsChanged.__name__)


def test_children_are_called_and_their_failures_raised(bench: Bench) -> None:
    app = bench.tasks()

    @app.task(name="page")
    def page(number: int) -> int:
        if number < 0:
            raise Bury("no such page")
        return number * 10

    @app.task(name="book")
    async def book(job: AsyncJobContext) -> list[Any]:
        good = await asyncio.gather(*(job.call(page, number) for number in range(3)))
        child = await job.start(page, -1)
        try:
            await child.result()
        except ChildFailed as error:
            return [*good, error.id == child.id, "no such page" in str(error)]
        return good

    job = book.put()
    bench.drain(app)
    assert job.result(timeout_s=0) == [0, 10, 20, True, True]
    assert bench.left() == EMPTY


def test_a_cancelled_job_hears_of_it_where_it_waits_and_can_undo(bench: Bench) -> None:
    app, calls = bench.tasks(), list[str]()

    @app.task(name="child")
    def child(job: JobContext) -> None:
        job.sleep(1e6)

    @app.task(name="order")
    def order(job: JobContext) -> str:
        job.step("pay", lambda: calls.append("pay"))
        try:
            job.call(child)
        except JobCancelled:
            job.sleep(10)
            job.step("refund", lambda: calls.append("refund"))
            raise
        return "done"

    job = order.put()
    bench.drain(app)
    assert job.cancel() == "requested"
    bench.drain(app, delayed=True)
    assert job.status().state == "cancelled"
    assert calls == ["pay", "refund"]
    assert bench.left() == EMPTY
    assert bench.client.store.url


def test_force_removes_a_durable_job_with_its_rows(bench: Bench) -> None:
    app = bench.tasks()

    @app.task(name="order")
    def order(job: JobContext) -> None:
        job.wait("never")

    job = order.put()
    bench.drain(app)
    job.send("other", 1)
    assert job.cancel(force=True) == "cancelled"
    assert job.status().state == "cancelled"
    assert bench.left() == EMPTY


def test_a_job_begins_again_with_other_arguments(bench: Bench) -> None:
    app, calls = bench.tasks(), list[int]()

    @app.task(name="count")
    def count(job: JobContext, number: int) -> int:
        job.step("count", lambda: calls.append(number))
        if number < 5:
            job.again(number + 1)
        return number

    job = count.put(1)
    bench.drain(app)
    assert job.result(timeout_s=0) == 5
    assert calls == [1, 2, 3, 4, 5]
    assert bench.left() == EMPTY


def test_recorded_values_stay_the_same(bench: Bench) -> None:
    app, seen = bench.tasks(), list[Any]()

    @app.task(name="values")
    def values(job: JobContext) -> None:
        seen.append((job.now(), job.new_id(), job.random(), job.version))
        job.sleep(60)

    values.put()
    bench.drain(app, delayed=True)
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_a_version_that_this_code_cannot_go_on_with_is_given_back(bench: Bench) -> None:
    old, new, both = (bench.tasks() for _ in range(3))
    seen: list[Any] = []

    def order(job: JobContext) -> None:
        job.sleep(60)
        seen.append(job.version)

    job = old.task(name="order", version="1", max_attempts=1)(order).put()
    bench.drain(old)
    bench.clock.advance(61)
    new.task(name="order", version="2", max_attempts=1)(order)
    bench.drain(new)
    assert (job.status().error or "").startswith("UnknownTask")
    both.task(name="order", version="2", versions=["1"])(order)
    bench.drain(both, delayed=True)
    assert (job.status().state, seen) == ("done", ["1"])


def test_a_map_has_the_results_in_order_and_collects_failures(bench: Bench) -> None:
    app = bench.tasks()

    @app.task(name="square", max_attempts=1)
    def square(number: int) -> int:
        if number == 13:
            raise ValueError("unlucky")
        return number * number

    @app.task(name="squares")
    def squares(job: JobContext, most: int) -> list[Any]:
        found = job.map(square, [square.args(number) for number in range(most)], on_failure="collect")
        return [str(one) if isinstance(one, JobFailed) else one for one in found]

    @app.task(name="sum")
    async def total(job: AsyncJobContext, most: int) -> int:
        return sum(await job.map(square, [square.args(number) for number in range(most)]))

    small, large, empty, failing = total.put(10), squares.put(1_500), total.put(0), total.put(20)
    bench.drain(app)
    assert (small.result(timeout_s=0), empty.result(timeout_s=0)) == (285, 0)
    results = large.result(timeout_s=0)
    assert "unlucky" in results.pop(13)
    assert results == [number * number for number in range(1_500) if number != 13]
    with pytest.raises(JobFailed, match="unlucky"):
        failing.result(timeout_s=0)
    assert failing.cancel(force=True) == "cancelled"
    assert bench.left() == EMPTY


def test_a_map_finds_children_that_no_worker_could_report(bench: Bench) -> None:
    app = bench.tasks()

    @app.task(name="page")
    def page(number: int) -> int:
        return number

    @app.task(name="book", queue="books")
    def book(job: JobContext) -> list[Any]:
        found = job.map(page, [page.args(number) for number in range(3)], on_failure="collect")
        return [str(one) if isinstance(one, JobFailed) else one for one in found]

    job = book.put()
    books, pages = app.worker(queues=["books"]), app.worker(queues=["default"])
    bench.drain_workers(books)
    waiting = Queue[Any]("default", client=bench.client)
    removed = waiting.browse()[1]
    assert waiting.cancel(removed.id).count == 1
    bench.drain_workers(books, pages, delayed=True)
    assert job.result(timeout_s=0) == [0, f"job {removed.id} of queue 'default' has no result: it was removed", 2]


def test_a_map_looks_at_its_children_only_after_it_has_waited_for_them(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    app, looked = bench.tasks(), list[int]()
    look = Maps._find_dead

    def noted_look(maps: Maps, row: Row, marks: str) -> dict[int, Report] | None:
        looked.append(row.count)
        return look(maps, row, marks)

    monkeypatch.setattr(Maps, "_find_dead", noted_look)

    @app.task(name="page", queue="pages")
    def page(number: int) -> int:
        return number

    @app.task(name="book", queue="books")
    def book(job: JobContext) -> int:
        return len(job.map(page, [page.args(number) for number in range(3)]))

    book.put()
    bench.drain_workers(app.worker(queues=["books"]))
    assert looked == []
    bench.clock.advance(6.0)
    bench.drain_workers(app.worker(queues=["books"]))
    assert looked == [3]


def test_the_janitor_gives_an_end_to_what_removed_jobs_left_behind(bench: Bench) -> None:
    app = bench.tasks()

    @app.task(name="order")
    def order(job: JobContext) -> None:
        job.step("begin", int)
        job.wait("never")

    removed, living = order.put(), order.put()
    bench.drain(app)
    removed.send("other", 1)
    assert Queue[Any]("default", client=bench.client).cancel(removed.id).count == 1
    assert len(bench.left()["steps"]) == 4
    assert Janitor(bench.client.store, ["default"], "the test").look("default") == 4
    bench.clock.advance(31 * 86_400.0)
    left = bench.left()
    assert {key[0] for key, _ in left["steps"]} == {living.id}
    assert left["signals"] == []
