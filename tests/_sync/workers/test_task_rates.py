# Generated from tests/_async/workers/test_task_rates.py by tools/unasync.py; do not edit.
"""`rate=` of a task: all workers together start it no more often, and other tasks of the queue go on."""

from typing import Any

import pytest

from holdfast import Rate
from holdfast._sync.flows.working import queue_shift
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.tasks import Tasks
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock

A_MINUTE = Rate(1, per_s=60.0)


def tasks_of(client: ControlPlaneClient, ran: list[str], rate: Rate | None = A_MINUTE) -> Tasks:
    app = Tasks(client=client)

    @app.task(name="call", rate=rate)
    def call(number: int) -> None:
        ran.append(f"call {number}")

    @app.task(name="other")
    def other() -> None:
        ran.append("other")

    return app


def work(*apps: Tasks) -> None:
    for app in apps:
        app.run(until_empty=True, signals=False, schedules=False, concurrency=2)


def started_at_once(client: ControlPlaneClient, ran: list[str]) -> None:
    """Put three calls and something else, and let two workers work, one after the other."""
    apps = [tasks_of(client, ran), tasks_of(client, ran)]
    call = apps[0].find("call")
    call.put_many([call.args(number) for number in range(3)])
    apps[0].find("other").put()
    work(*apps)


def test_a_task_is_started_as_often_as_its_rate_says_and_others_go_on(client: ControlPlaneClient, clock: FakeClock) -> None:
    ran: list[str] = []
    started_at_once(client, ran)
    assert sorted(ran) == ["call 0", "other"]
    (waiting, _) = Queue[Any]("default", client=client).browse()
    assert (Queue[Any]("default", client=client).explain(waiting)).reason == "group_rate"
    for _ in range(2):
        clock.advance(60.0)
        work(tasks_of(client, ran))
    assert ran[2:] == ["call 1", "call 2"]


def test_control_if_no_worker_set_the_rate_all_of_them_would_start(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def set_nothing(*_: Any) -> None: ...

    monkeypatch.setattr(queue_shift, "set_rates", set_nothing)
    ran: list[str] = []
    started_at_once(client, ran)
    assert sorted(ran) == ["call 0", "call 1", "call 2", "other"]


def test_a_rate_that_changed_holds_from_the_next_worker_on_and_one_that_is_gone_binds_no_new_job(
    client: ControlPlaneClient, clock: FakeClock
) -> None:
    ran: list[str] = []
    started_at_once(client, ran)
    faster, free = tasks_of(client, ran, Rate(60, per_s=60.0)), tasks_of(client, ran, rate=None)
    work(faster)
    clock.advance(1.0)
    work(faster)
    assert ran.count("call 1") <= 1
    for number in (7, 8, 9):
        free.find("call").put(number)
    work(free)
    assert {"call 7", "call 8", "call 9"} <= set(ran)


def test_a_queue_with_groups_keeps_its_mode(client: ControlPlaneClient) -> None:
    queue = Queue[Any]("default", client=client)
    queue.configure(groups="strict")
    started_at_once(client, [])
    group = queue.group("call").info()
    assert group is not None
    assert (group.rate, group.limit) == (A_MINUTE, 1)


def test_what_does_not_go_with_a_rate_is_refused(client: ControlPlaneClient) -> None:
    app = tasks_of(client, [])
    with pytest.raises(ValueError, match="task call has rate=, for which its jobs are a group of their own"):
        app.find("call").using(group="acme").put(1)
    with pytest.raises(ValueError, match="prefetch= with most=, rate= or a batch"):
        app.worker(prefetch=5)
    with pytest.raises(TypeError, match="rate"):
        app.task(rate=3)(print_it)  # type: ignore[call-overload]


def print_it(number: int) -> None: ...
