"""Workers put the runs of schedules that are due, unless they are told not to."""

from datetime import UTC, datetime

import pytest

from holdfast import JobContext
from holdfast._async.flows.ticking import AsyncTicker
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.schedule import AsyncSchedule
from holdfast._async.handles.tasks import AsyncTasks
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.errors import ScheduleMissing
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncGate

pytestmark = pytest.mark.anyio


async def test_a_worker_puts_what_is_due_and_runs_it(client: ControlPlaneClient, clock: FakeClock) -> None:
    gate, seen = AsyncGate(), list[object]()

    async def handle(value: dict[str, str], job: JobContext) -> None:
        seen.append((value, (job.metadata or {})["schedule"], job.scheduled_for))
        gate.open()

    await AsyncSchedule("report", "every 60 s", ("reports", {"kind": "daily"}), client=client).save()
    async with AsyncWorker(handle, "reports", client=client, poll_interval_s=3_600.0):
        clock.advance(60.0)
        await gate.wait()
    assert seen == [({"kind": "daily"}, "report", datetime(2023, 11, 14, 22, 14, tzinfo=UTC))]
    assert (await AsyncSchedule.from_name("report", client=client).status()).runs == 1


async def test_a_schedule_that_is_saved_while_workers_run_is_heard_of(client: ControlPlaneClient, clock: FakeClock) -> None:
    gate = AsyncGate()

    async def handle(value: int) -> None:
        gate.open()

    async with AsyncWorker(handle, "jobs", client=client, poll_interval_s=3_600.0) as worker:
        await AsyncSchedule("late", "every 60 s", ("jobs", 1), client=client).save()
        clock.advance(60.0)
        await gate.wait()
    assert worker.health.done == 1


async def test_one_that_is_told_so_puts_none(client: ControlPlaneClient, clock: FakeClock) -> None:
    async def handle(value: int) -> None:
        pass

    await AsyncSchedule("report", "every 60 s", ("jobs", 1), client=client).save()
    clock.advance(60.0)
    await AsyncWorker(handle, "jobs", client=client, schedules=False).run(until_empty=True)
    assert (await AsyncSchedule.from_name("report", client=client).status()).runs == 0


async def test_a_task_is_run_by_the_schedule_that_its_code_declares(client: ControlPlaneClient, clock: FakeClock) -> None:
    gate, seen, app = AsyncGate(), list[object](), AsyncTasks("shop", client=client)

    @app.task(name="report", max_attempts=2, results=False)
    async def report(kind: str, *, pages: int = 1) -> None:
        seen.append((kind, pages))
        gate.open()

    app.schedule("every 60 s", report, "daily", pages=3).options(name="nightly", overlap="queue")
    for schedule in app.schedules:
        await schedule.save()
    async with app.worker():
        clock.advance(60.0)
        await gate.wait()
    assert seen == [("daily", 3)]
    status = await AsyncSchedule.from_name("nightly", client=client).status()
    assert (status.source, status.runs, status.overlap, status.is_orphan) == ("shop", 1, "queue", False)


async def runs_of_workers_that_end_at_once(client: ControlPlaneClient, clock: FakeClock, *late: str) -> list[str]:
    """What two such workers run, one before the run of their schedule is due and one after, if these parts of a ticker come too late."""
    seen, app = list[str](), AsyncTasks("shop", client=client)

    @app.task(name="report", results=False)
    async def report(kind: str) -> None:
        seen.append(kind)

    async def too_late(_: AsyncTicker) -> None: ...

    app.schedule("every 60 s", report, "daily")
    with pytest.MonkeyPatch.context() as patch:
        for part in late:
            patch.setattr(AsyncTicker, part, too_late)
        await app.worker().run(until_empty=True)
        clock.advance(60.0)
        await app.worker().run(until_empty=True)
    return seen


async def test_a_worker_that_ends_at_once_has_saved_its_schedules_and_run_what_is_due(client: ControlPlaneClient, clock: FakeClock) -> None:
    assert await runs_of_workers_that_end_at_once(client, clock, "run") == ["daily"]


async def test_control_schedules_that_are_left_to_their_own_task_come_too_late(client: ControlPlaneClient, clock: FakeClock) -> None:
    assert await runs_of_workers_that_end_at_once(client, clock, "run", "begin") == []


async def test_a_schedule_is_saved_for_a_call_of_a_task(client: ControlPlaneClient, clock: FakeClock) -> None:
    gate, seen, app = AsyncGate(), list[object](), AsyncTasks("shop", client=client, queue="reports")

    @app.task(name="report", version="2", max_attempts=2, results=False)
    async def report(job: JobContext, kind: str, *, pages: int = 1) -> None:
        seen.append((kind, pages, (job.metadata or {})["by"], job.message.max_attempts, job.scheduled_for))
        gate.open()

    schedule = AsyncSchedule("weekly", "every 60 s", report.args("weekly", pages=3), metadata={"by": "ann"}, client=client)
    await schedule.save()
    async with app.worker():
        clock.advance(60.0)
        await gate.wait()
    assert seen == [("weekly", 3, "ann", 2, datetime(2023, 11, 14, 22, 14, tzinfo=UTC))]
    assert (await schedule.status()).queue == "reports"


async def test_what_a_task_declares_can_be_shown_paused_run_and_removed(client: ControlPlaneClient, clock: FakeClock) -> None:
    app = AsyncTasks("shop", client=client, queue="reports")

    @app.task(name="report", results=False, key=lambda kind: ("report", kind))
    async def report(kind: str) -> None: ...

    schedule = app.schedule("every 60 s", report, "daily").options(group="ann", name="nightly").options(priority=4)
    assert await schedule.next_runs(1) == [datetime(2023, 11, 14, 22, 14, tzinfo=UTC)]
    with pytest.raises(ScheduleMissing, match="nightly"):
        await schedule.pause()
    await schedule.save()
    await schedule.pause("the database moves")
    assert (await schedule.status()).paused == "the database moves"
    await schedule.resume()
    job = await schedule.run_now()
    assert (await report.put("daily")).id == job.id, "a run has the key of its task"
    (found,) = await AsyncQueue.from_name("reports", client=client).browse()
    assert (found.group, found.priority, found.key) == ("ann", 4, ("report", "daily"))
    assert (await schedule.delete(), await schedule.delete()) == (True, False)


async def test_two_schedules_of_one_name_and_rules_that_make_no_sense_are_refused(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)

    @app.task(name="report")
    async def report(kind: str) -> None: ...

    with pytest.raises(ValueError, match="cron expression"):
        app.schedule("never", report, "daily")
    with pytest.raises(TypeError):
        app.schedule("* * * * *", report, 1)  # type: ignore[arg-type]
    app.schedule("* * * * *", report, "a")
    app.schedule("* * * * *", report, "b")
    with pytest.raises(ValueError, match="two schedules are named 'report'"):
        app.worker()
