"""`rate=` of a task: all workers together start it no more often, and other tasks of the queue go on."""

from typing import Any

import pytest

from holdfast import Rate
from holdfast._async.flows.working import queue_shift
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.tasks import AsyncTasks
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock

pytestmark = pytest.mark.anyio

A_MINUTE = Rate(1, per_s=60.0)


def tasks_of(client: ControlPlaneClient, ran: list[str], rate: Rate | None = A_MINUTE) -> AsyncTasks:
    app = AsyncTasks(client=client)

    @app.task(name="call", rate=rate)
    async def call(number: int) -> None:
        ran.append(f"call {number}")

    @app.task(name="other")
    async def other() -> None:
        ran.append("other")

    return app


async def work(*apps: AsyncTasks) -> None:
    for app in apps:
        await app.run(until_empty=True, signals=False, schedules=False, concurrency=2)


async def started_at_once(client: ControlPlaneClient, ran: list[str]) -> None:
    """Put three calls and something else, and let two workers work, one after the other."""
    apps = [tasks_of(client, ran), tasks_of(client, ran)]
    call = apps[0].find("call")
    await call.put_many([call.args(number) for number in range(3)])
    await apps[0].find("other").put()
    await work(*apps)


async def test_a_task_is_started_as_often_as_its_rate_says_and_others_go_on(client: ControlPlaneClient, clock: FakeClock) -> None:
    ran: list[str] = []
    await started_at_once(client, ran)
    assert sorted(ran) == ["call 0", "other"]
    (waiting, _) = await AsyncQueue[Any]("default", client=client).browse()
    assert (await AsyncQueue[Any]("default", client=client).explain(waiting)).reason == "group_rate"
    for _ in range(2):
        clock.advance(60.0)
        await work(tasks_of(client, ran))
    assert ran[2:] == ["call 1", "call 2"]


async def test_control_if_no_worker_set_the_rate_all_of_them_would_start(
    client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def set_nothing(*_: Any) -> None: ...

    monkeypatch.setattr(queue_shift, "set_rates", set_nothing)
    ran: list[str] = []
    await started_at_once(client, ran)
    assert sorted(ran) == ["call 0", "call 1", "call 2", "other"]


async def test_a_rate_that_changed_holds_from_the_next_worker_on_and_one_that_is_gone_binds_no_new_job(
    client: ControlPlaneClient, clock: FakeClock
) -> None:
    ran: list[str] = []
    await started_at_once(client, ran)
    faster, free = tasks_of(client, ran, Rate(60, per_s=60.0)), tasks_of(client, ran, rate=None)
    await work(faster)
    clock.advance(1.0)
    await work(faster)
    assert ran.count("call 1") <= 1
    for number in (7, 8, 9):
        await free.find("call").put(number)
    await work(free)
    assert {"call 7", "call 8", "call 9"} <= set(ran)


async def test_a_queue_with_groups_keeps_its_mode(client: ControlPlaneClient) -> None:
    queue = AsyncQueue[Any]("default", client=client)
    await queue.configure(groups="strict")
    await started_at_once(client, [])
    group = await queue.group("call").info()
    assert group is not None
    assert (group.rate, group.limit) == (A_MINUTE, 1)


async def test_what_does_not_go_with_a_rate_is_refused(client: ControlPlaneClient) -> None:
    app = tasks_of(client, [])
    with pytest.raises(ValueError, match="task call has rate=, for which its jobs are a group of their own"):
        await app.find("call").using(group="acme").put(1)
    with pytest.raises(ValueError, match="prefetch= with most=, rate= or a batch"):
        app.worker(prefetch=5)
    with pytest.raises(TypeError, match="rate"):
        app.task(rate=3)(print_it)  # type: ignore[call-overload]


def print_it(number: int) -> None: ...
