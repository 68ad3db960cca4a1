"""A step of an async job that is not awaited fails the job: of what was called nothing happened."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import AsyncJobContext, ControlPlaneClient, JobFailed, Tasks
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.workers.durable import Bench


@pytest.fixture
def client() -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient("memory://") as made:
        yield made


@pytest.fixture
def bench() -> Iterator[Bench]:
    clock = FakeClock()
    made = Bench(MemoryStore(clock=clock), clock)
    yield made
    made.client.close()


def child() -> None: ...


FORGOTTEN: list[tuple[str, Callable[[AsyncJobContext, Any], Any]]] = [
    ("job.step('charge', …)", lambda job, _: job.step("charge", child)),
    ("job.step('other', …)", lambda job, _: job.branch("b").options(once=True).step("other", child)),
    ("job.sleep()", lambda job, _: job.sleep(5.0)),
    ("job.wait('approved')", lambda job, _: job.wait("approved")),
    ("job.call('child')", lambda job, task: job.call(task)),
    ("job.start('child')", lambda job, task: job.start(task)),
    ("job.new_id()", lambda job, _: job.new_id()),
]


def run(app: Tasks, kind: str) -> None:
    options: Any = {"until_empty": True, "signals": False, "heartbeat_s": None}
    if kind == "async":
        asyncio.run(app.aio.run(**options))
    else:
        app.run(**options)


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(("shown", "forget"), FORGOTTEN, ids=[shown for shown, _ in FORGOTTEN])
def test_what_is_not_awaited_fails_the_job_by_its_name(client: ControlPlaneClient, shown: str, forget: Any, kind: str) -> None:
    app = Tasks(client=client, max_attempts=1)
    task = app.task(name="child")(child)

    @app.task(name="order")
    async def order(job: AsyncJobContext) -> str:
        forget(job, task)
        await job.step("ship", child)
        return "done"

    job = order.put()
    run(app, kind)
    with pytest.raises(JobFailed) as caught:
        job.result(timeout_s=0)
    assert f"TypeError: {shown} was not awaited, so nothing of it happened: write await {shown}" in str(caught.value)


def test_all_that_were_forgotten_are_counted(client: ControlPlaneClient) -> None:
    app = Tasks(client=client, max_attempts=1)

    @app.task(name="order")
    async def order(job: AsyncJobContext) -> None:
        for number in range(100):
            await job.sleep(0)
            _ = job.step(f"step {number}", child)

    job = order.put()
    app.run(until_empty=True, signals=False)
    with pytest.raises(JobFailed, match=r"job.step\('step 0', …\), and 99 other calls of the job, was not awaited"):
        job.result(timeout_s=0)


def test_a_step_that_is_awaited_later_may_be_called_before_the_job_sleeps(bench: Bench) -> None:
    app = bench.tasks()

    @app.task(name="order")
    async def order(job: AsyncJobContext) -> list[Any]:
        later, task = job.step("later", lambda: 2), asyncio.create_task(job.step("task", lambda: 3))
        await job.sleep(3600)
        return [1, await later, await task]

    job = order.put()
    bench.drain(app, delayed=True)
    assert job.result(timeout_s=0) == [1, 2, 3]


def test_a_job_that_fails_otherwise_says_that(client: ControlPlaneClient) -> None:
    app = Tasks(client=client, max_attempts=1)

    @app.task(name="order")
    async def order(job: AsyncJobContext) -> None:
        _ = job.step("charge", child)
        raise ValueError("broken")

    job = order.put()
    app.run(until_empty=True, signals=False)
    with pytest.raises(JobFailed, match="ValueError: broken"):
        job.result(timeout_s=0)


def test_control_without_the_look_the_job_is_done(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsyncJobContext, "refuse_unawaited", lambda job: None)
    app = Tasks(client=client)

    @app.task(name="order")
    async def order(job: AsyncJobContext) -> str:
        _ = job.step("charge", child)
        return "done"

    job = order.put()
    app.run(until_empty=True, signals=False)
    assert job.result(timeout_s=0) == "done"
