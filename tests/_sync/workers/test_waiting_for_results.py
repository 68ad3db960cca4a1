# Generated from tests/_async/workers/test_waiting_for_results.py by tools/unasync.py; do not edit.
"""Those who wait for results of one queue share a reader: what it sees it tells the others, and when it ends another one reads."""

from typing import Any

import pytest

from holdfast import Bury
from holdfast._sync.flows import awaiting
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.tasks import Tasks
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON
from holdfast.commands import Together
from holdfast.errors import Closed, JobFailed, JobGone, ResultMissing
from holdfast.workers import result_waits
from tests.runners import Runner
from tests.workers.detours import Detour

WAITERS = 30


class Counted:
    """A store that counts the looks for results."""

    def __init__(self, client: ControlPlaneClient) -> None:
        self.looks = 0
        inner = client.store

        def execute(command: Any) -> Any:
            self.looks += isinstance(command, Together)
            return inner.execute(command)

        self.store: Any = Detour(inner, execute)

    def result(self, message_id: str, timeout_s: float = 60.0) -> Any:
        return awaiting.result(self.store, "default", message_id, JSON, timeout_s)


def app_of(client: ControlPlaneClient) -> Any:
    app = Tasks(client=client)

    @app.task(name="double", max_attempts=1)
    def double(number: int) -> int:
        if number < 0:
            raise Bury("negative")
        return 2 * number

    return app


def looks_of_many(client: ControlPlaneClient, runner: Runner) -> int:
    """How many looks there are until so many waiters have so many results, which come one after the other."""
    app, counted = app_of(client), Counted(client)
    jobs = [app.find("double").put(number) for number in range(WAITERS)]
    waiting = [runner.start(counted.result, job.id) for job in jobs]
    runner.until(lambda: counted.looks >= WAITERS)
    for _ in jobs:
        before = counted.looks
        app.run(max_jobs=1, signals=False, heartbeat_s=None)
        runner.until(lambda before=before: counted.looks > before)  # type: ignore[misc] # called in this round
    assert [one.result() for one in waiting] == [2 * number for number in range(WAITERS)]
    return counted.looks


def test_a_result_wakes_one_reader_and_not_every_waiter(client: ControlPlaneClient) -> None:
    with Runner() as runner:
        assert looks_of_many(client, runner) <= 5 * WAITERS


@pytest.mark.parametrize("client", ["memory"], indirect=True)
def test_control_where_each_reads_for_itself_each_result_wakes_all(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_waits.ResultWaits, "reads", lambda *_: True)
    with Runner() as runner:
        assert looks_of_many(client, runner) > 5 * WAITERS


def test_when_the_reader_has_its_result_another_one_reads(client: ControlPlaneClient) -> None:
    app = app_of(client)
    first, second, third = [app.find("double").put(number) for number in (1, -1, 3)]
    with Runner() as runner:
        waiting = [runner.start(one.result) for one in (first, second, third, third)]
        app.run(until_empty=True, signals=False, heartbeat_s=None)
        assert waiting[0].result() == 2
        with pytest.raises(JobFailed, match="negative"):
            waiting[1].result()
        assert [waiting[2].result(), waiting[3].result()] == [6, 6]
    assert result_waits._all == {}


def test_one_who_does_not_wait_long_leaves_the_others_waiting(client: ControlPlaneClient) -> None:
    app = app_of(client)
    job = app.find("double").put(4)
    counted = Counted(client)
    with Runner() as runner:
        short = runner.start(counted.result, job.id, 0.05)
        runner.until(lambda: counted.looks == 1)
        long = runner.start(counted.result, job.id)
        with pytest.raises(TimeoutError):
            short.result()
        app.run(until_empty=True, signals=False, heartbeat_s=None)
        assert long.result() == 8


def test_closing_the_client_ends_every_wait(client: ControlPlaneClient) -> None:
    app = app_of(client)
    jobs = [app.find("double").put(number) for number in range(3)]
    counted = Counted(client)
    with Runner() as runner:
        waiting = [runner.start(counted.result, job.id) for job in jobs]
        runner.until(lambda: counted.looks >= len(jobs))
        client.close()
        for one in waiting:
            with pytest.raises(Closed):
                one.result()


def test_one_who_was_forgotten_before_it_left_keeps_nobody_waiting(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaiting, "TURN_S", 0.01)
    app = app_of(client)
    job = app.find("double").put(5)
    with result_waits.waits_of(client.store, "default") as waits:
        lost = waits.join("another")
        assert waits.reads(lost)
        with Runner() as runner:
            waiting = runner.start(job.result)
            runner.until(lambda: job.id in waits.ids())
            app.run(until_empty=True, signals=False, heartbeat_s=None)
            del lost  # An interrupt came before it could leave.
            assert waiting.result() == 10


def test_a_job_that_is_done_and_kept_has_ended(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)

    @app.task(name="note")
    def note() -> None: ...

    Queue[Any]("default", client=client).configure(keep_done_s=60.0)
    job = note.put()
    app.run(until_empty=True, signals=False, heartbeat_s=None, name="me")
    status = job.status()
    assert (status.state, status.task, status.attempts, (status.worker or "").split("/")[0]) == ("done", "note", 1, "me")
    assert status.finished_at is not None
    assert [one.state for one in job.watch()] == ["done"]
    with pytest.raises(ResultMissing):
        job.result(timeout_s=0)
    with pytest.raises(JobGone):
        job.send("late")
    assert job.cancel() == "absent"
