# Generated from tests/_async/workers/test_schedules.py by tools/unasync.py; do not edit.
"""Workers put the runs of schedules that are due, unless they are told not to."""

from datetime import UTC, datetime

import pytest

from holdfast import JobContext
from holdfast._sync.flows.ticking import Ticker
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.schedule import Schedule
from holdfast._sync.handles.tasks import Tasks
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.errors import ScheduleMissing
from holdfast.testing.clock import FakeClock
from tests.runners import Gate


def test_a_worker_puts_what_is_due_and_runs_it(client: ControlPlaneClient, clock: FakeClock) -> None:
    gate, seen = Gate(), list[object]()

    def handle(value: dict[str, str], job: JobContext) -> None:
        seen.append((value, (job.metadata or {})["schedule"], job.scheduled_for))
        gate.open()

    Schedule("report", "every 60 s", ("reports", {"kind": "daily"}), client=client).save()
    with Worker(handle, "reports", client=client, poll_interval_s=3_600.0):
        clock.advance(60.0)
        gate.wait()
    assert seen == [({"kind": "daily"}, "report", datetime(2023, 11, 14, 22, 14, tzinfo=UTC))]
    assert (Schedule.from_name("report", client=client).status()).runs == 1


def test_a_schedule_that_is_saved_while_workers_run_is_heard_of(client: ControlPlaneClient, clock: FakeClock) -> None:
    gate = Gate()

    def handle(value: int) -> None:
        gate.open()

    with Worker(handle, "jobs", client=client, poll_interval_s=3_600.0) as worker:
        Schedule("late", "every 60 s", ("jobs", 1), client=client).save()
        clock.advance(60.0)
        gate.wait()
    assert worker.health.done == 1


def test_one_that_is_told_so_puts_none(client: ControlPlaneClient, clock: FakeClock) -> None:
    def handle(value: int) -> None:
        pass

    Schedule("report", "every 60 s", ("jobs", 1), client=client).save()
    clock.advance(60.0)
    Worker(handle, "jobs", client=client, schedules=False).run(until_empty=True)
    assert (Schedule.from_name("report", client=client).status()).runs == 0


def test_a_task_is_run_by_the_schedule_that_its_code_declares(client: ControlPlaneClient, clock: FakeClock) -> None:
    gate, seen, app = Gate(), list[object](), Tasks("shop", client=client)

    @app.task(name="report", max_attempts=2, results=False)
    def report(kind: str, *, pages: int = 1) -> None:
        seen.append((kind, pages))
        gate.open()

    app.schedule("every 60 s", report, "daily", pages=3).options(name="nightly", overlap="queue")
    for schedule in app.schedules:
        schedule.save()
    with app.worker():
        clock.advance(60.0)
        gate.wait()
    assert seen == [("daily", 3)]
    status = Schedule.from_name("nightly", client=client).status()
    assert (status.source, status.runs, status.overlap, status.is_orphan) == ("shop", 1, "queue", False)


def runs_of_workers_that_end_at_once(client: ControlPlaneClient, clock: FakeClock, *late: str) -> list[str]:
    """What two such workers run, one before the run of their schedule is due and one after, if these parts of a ticker come too late."""
    seen, app = list[str](), Tasks("shop", client=client)

    @app.task(name="report", results=False)
    def report(kind: str) -> None:
        seen.append(kind)

    def too_late(_: Ticker) -> None: ...

    app.schedule("every 60 s", report, "daily")
    with pytest.MonkeyPatch.context() as patch:
        for part in late:
            patch.setattr(Ticker, part, too_late)
        app.worker().run(until_empty=True)
        clock.advance(60.0)
        app.worker().run(until_empty=True)
    return seen


def test_a_worker_that_ends_at_once_has_saved_its_schedules_and_run_what_is_due(client: ControlPlaneClient, clock: FakeClock) -> None:
    assert runs_of_workers_that_end_at_once(client, clock, "run") == ["daily"]


def test_control_schedules_that_are_left_to_their_own_task_come_too_late(client: ControlPlaneClient, clock: FakeClock) -> None:
    assert runs_of_workers_that_end_at_once(client, clock, "run", "begin") == []


def test_a_schedule_is_saved_for_a_call_of_a_task(client: ControlPlaneClient, clock: FakeClock) -> None:
    gate, seen, app = Gate(), list[object](), Tasks("shop", client=client, queue="reports")

    @app.task(name="report", version="2", max_attempts=2, results=False)
    def report(job: JobContext, kind: str, *, pages: int = 1) -> None:
        seen.append((kind, pages, (job.metadata or {})["by"], job.message.max_attempts, job.scheduled_for))
        gate.open()

    schedule = Schedule("weekly", "every 60 s", report.args("weekly", pages=3), metadata={"by": "ann"}, client=client)
    schedule.save()
    with app.worker():
        clock.advance(60.0)
        gate.wait()
    assert seen == [("weekly", 3, "ann", 2, datetime(2023, 11, 14, 22, 14, tzinfo=UTC))]
    assert (schedule.status()).queue == "reports"


def test_what_a_task_declares_can_be_shown_paused_run_and_removed(client: ControlPlaneClient, clock: FakeClock) -> None:
    app = Tasks("shop", client=client, queue="reports")

    @app.task(name="report", results=False, key=lambda kind: ("report", kind))
    def report(kind: str) -> None: ...

    schedule = app.schedule("every 60 s", report, "daily").options(group="ann", name="nightly").options(priority=4)
    assert schedule.next_runs(1) == [datetime(2023, 11, 14, 22, 14, tzinfo=UTC)]
    with pytest.raises(ScheduleMissing, match="nightly"):
        schedule.pause()
    schedule.save()
    schedule.pause("the database moves")
    assert (schedule.status()).paused == "the database moves"
    schedule.resume()
    job = schedule.run_now()
    assert (report.put("daily")).id == job.id, "a run has the key of its task"
    (found,) = Queue.from_name("reports", client=client).browse()
    assert (found.group, found.priority, found.key) == ("ann", 4, ("report", "daily"))
    assert (schedule.delete(), schedule.delete()) == (True, False)


def test_two_schedules_of_one_name_and_rules_that_make_no_sense_are_refused(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)

    @app.task(name="report")
    def report(kind: str) -> None: ...

    with pytest.raises(ValueError, match="cron expression"):
        app.schedule("never", report, "daily")
    with pytest.raises(TypeError):
        app.schedule("* * * * *", report, 1)  # type: ignore[arg-type]
    app.schedule("* * * * *", report, "a")
    app.schedule("* * * * *", report, "b")
    with pytest.raises(ValueError, match="two schedules are named 'report'"):
        app.worker()
