"""Rates of tasks, from what workers say of them with their heartbeats."""

from typing import Any

import pytest

from holdfast._async.flows.working.registering import AsyncRegistration
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.tasks import AsyncTasks
from holdfast._async.handles.worker import STOPPED
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from holdfast.views.task_work import QueueWork, TaskWork
from holdfast.workers.orders import make_orders

pytestmark = pytest.mark.anyio


async def test_rates_are_told_of_each_task(client: ControlPlaneClient, clock: FakeClock) -> None:
    app, queue = AsyncTasks(client=client, max_attempts=1), AsyncQueue[Any]("default", client=client)

    @app.task(name="send")
    async def send() -> None: ...

    @app.task(name="break")
    async def break_() -> None:
        raise ValueError("broken")

    for task in (send, send, send, break_):
        await task.put()
    clock.advance(8)
    await app.run(until_empty=True, signals=False, heartbeat_s=10.0)
    told = await queue.task_rates(60)
    assert {name: (one.done, one.failed, one.failed_share) for name, one in told.items()} == {"break": (0, 1, 1.0), "send": (3, 0, 0.0)}
    assert told["send"].median_wait_s == pytest.approx(8, rel=1 / 8)
    assert told["send"].done_per_s == 3 / 60
    clock.advance(61)
    assert await queue.task_rates(60) == {}
    assert await AsyncQueue[Any]("other", client=client).task_rates(300) == {}


async def test_what_workers_had_said_before_does_not_count(client: ControlPlaneClient, clock: FakeClock) -> None:
    async def nothing(value: object) -> None: ...

    orders = make_orders(nothing, "default", name="w", heartbeat_s=1_000.0)
    one, other = (AsyncRegistration(client.async_store, orders, name) for name in ("one", "other"))
    for done in (5, 6, 8):
        await one.beat(STOPPED, {"default": {"send": TaskWork(done=done, durations={3: done})}})
        await other.beat(STOPPED, {"default": {"send": TaskWork(failed=done)}})
        clock.advance(40)
    told = (await AsyncQueue[Any]("default", client=client).task_rates(60))["send"]
    assert (told.done, told.failed, told.returned) == (2, 2, 0)
    assert told.median_duration_s == told.p95_duration_s == pytest.approx(1.25**3)
    assert told.median_wait_s is None


async def test_control_what_was_said_before_counts_without_an_earlier_heartbeat(client: ControlPlaneClient, clock: FakeClock) -> None:
    async def nothing(value: object) -> None: ...

    one = AsyncRegistration(client.async_store, make_orders(nothing, "default", name="w", heartbeat_s=1_000.0), "one")
    await one.beat(STOPPED)
    clock.advance(1)
    await one.beat(STOPPED, {"default": {"send": TaskWork(done=8)}})
    assert (await AsyncQueue[Any]("default", client=client).task_rates(60))["send"].done == 8


def test_a_worker_tells_of_so_many_tasks_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.views.task_work.TASKS_MOST", 2)
    work = QueueWork()
    for name in ("a", "b", "c", "a"):
        work.add(name, "done", None, 0.0)
    assert {name: one.done for name, one in work.told().items()} == {"a": 2, "b": 1}
