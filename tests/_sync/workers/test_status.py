# Generated from tests/_async/workers/test_status.py by tools/unasync.py; do not edit.
"""What `Job.status` says over the life of a job."""

from typing import Any

import pytest

from holdfast import Backoff, Bury, JobContext
from holdfast._sync.handles.job import Job
from holdfast._sync.handles.tasks import Tasks
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock


def run(app: Tasks) -> None:
    app.run(until_empty=True, signals=False, heartbeat_s=None, name="me")


def test_a_job_waits_fails_is_tried_again_and_is_done(client: ControlPlaneClient, clock: FakeClock) -> None:
    app = Tasks(client=client, backoff=Backoff(first_s=5.0, jitter=0.0))
    seen: list[Any] = []

    @app.task(name="send")
    def send(job: JobContext, to: str) -> str:
        job.report(0.5)
        if job.attempts == 1:
            raise ValueError("not now")
        return to

    job = send.using(delay_s=1.0).put("ann")
    seen.append(job.status())
    clock.advance(1.0)
    seen.append(job.status())
    run(app)
    seen.append(job.status())
    clock.advance(5.0)
    run(app)
    seen.append(job.status())
    assert [one.state for one in seen] == ["delayed", "waiting", "retrying", "done"]
    assert [(one.task, one.attempts, one.failures, one.error) for one in seen] == [
        ("send", 0, 0, None),
        ("send", 0, 0, None),
        ("send", 1, 1, "ValueError: not now"),
        (None, 0, 0, None),
    ]
    assert (seen[0].due_at - seen[0].enqueued_at).total_seconds() == pytest.approx(1.0)
    assert (seen[2].due_at - seen[2].started_at).total_seconds() == pytest.approx(5.0)


def test_a_running_job_says_who_runs_it_and_how_it_sees_itself(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)
    seen: list[Any] = []

    @app.task(name="send")
    def send(job: JobContext) -> None:
        seen.append(Job[Any](job.queue, job.id, client=client).status())

    send.put()
    run(app)
    assert [(one.state, one.attempts, one.worker.split("/")[0]) for one in seen] == [("running", 1, "me")]


def test_a_dead_job_can_be_tried_again(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)
    is_fixed = False

    @app.task(name="send")
    def send() -> int:
        if not is_fixed:
            raise Bury("broken")
        return 7

    job = send.put()
    assert not job.retry()
    run(app)
    status = job.status()
    assert (status.state, status.error, status.finished_at is not None) == ("dead", "broken", True)
    is_fixed = True
    assert job.retry()
    run(app)
    assert job.result(timeout_s=0) == 7


def test_a_job_that_was_cancelled_or_never_was_says_so(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)

    @app.task(name="send")
    def send() -> None: ...

    job, other = send.put(), send.put()
    assert job.cancel() == "cancelled"
    assert (job.status()).state == "cancelled"
    run(app)
    assert (other.status()).state == "done"
    assert (send.job("nothing").status()).state == "gone"
