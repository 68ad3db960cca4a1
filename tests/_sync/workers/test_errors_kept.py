# Generated from tests/_async/workers/test_errors_kept.py by tools/unasync.py; do not edit.
"""Errors of jobs that are kept with their tracebacks, reports of progress, and following a job."""

import secrets
from typing import Any

from holdfast import Backoff, Bury, JobContext, JobStatus
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.tasks import Tasks
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from holdfast.workers.handlers.tracebacks import TRACEBACK_BYTES
from tests.runners import Runner


def run(app: Tasks) -> None:
    app.run(until_empty=True, signals=False, heartbeat_s=None, name="me")


def test_the_newest_three_errors_are_kept_with_where_they_were_raised(client: ControlPlaneClient, clock: FakeClock) -> None:
    app = Tasks(client=client, max_attempts=5, backoff=Backoff(first_s=1.0, factor=1.0, jitter=0.0))

    @app.task(name="send")
    def send(job: JobContext) -> None:
        raise ValueError(f"try {job.attempts}")

    job = send.put()
    for _ in range(5):
        run(app)
        clock.advance(1.0)
    status = job.status()
    assert (status.state, status.has_ended) == ("dead", True)
    assert [(one.attempt, one.type, one.message) for one in status.errors] == [
        (number, "ValueError", f"try {number}") for number in (3, 4, 5)
    ]
    traceback = status.errors[0].traceback or ""
    assert traceback.startswith("Traceback (most recent call last):")
    assert "in send" in traceback
    assert "holdfast/workers" not in traceback
    assert status.errors[0].worker.startswith("me/")


def test_a_job_that_was_done_in_the_end_still_tells_of_its_failures(client: ControlPlaneClient, clock: FakeClock) -> None:
    app = Tasks(client=client, backoff=Backoff(first_s=1.0, jitter=0.0))

    @app.task(name="send")
    def send(job: JobContext) -> str:
        if job.attempts == 1:
            raise KeyError("x")
        return "sent"

    job = send.put()
    run(app)
    clock.advance(1.0)
    run(app)
    status = job.status()
    assert (status.state, [one.type for one in status.errors]) == ("done", ["KeyError"])


def test_the_values_of_variables_are_in_no_stored_traceback(client: ControlPlaneClient) -> None:
    app = Tasks(client=client, max_attempts=1)
    secret = secrets.token_hex(16)

    @app.task(name="login")
    def login(user: str) -> None:
        password = secret
        if user:
            raise RuntimeError(f"{user} cannot log in with a password of {len(password)} characters")

    login.put("ann")
    run(app)
    kept = [str(value) for _, value in Dict.from_name("default-errors", client=client).items()]
    assert len(kept) == 1
    assert "ann cannot log in with a password of 32 characters" in kept[0]
    assert secret not in kept[0]


def test_a_long_traceback_is_cut_to_its_end(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)

    @app.task(name="long")
    def long() -> None:
        raise Bury("the end") from ValueError("ä" * 90_000)

    job = long.put()
    run(app)
    (error,) = (job.status()).errors
    assert len((error.traceback or "").encode()) <= TRACEBACK_BYTES
    assert (error.traceback or "").startswith("[…]")
    assert (error.traceback or "").endswith("Bury: the end")


def test_no_error_is_kept_where_that_was_not_wanted(client: ControlPlaneClient) -> None:
    app = Tasks(client=client, tracebacks=False, max_attempts=1)

    @app.task(name="send")
    def send() -> None:
        raise ValueError("no")

    job = send.put()
    run(app)
    status = job.status()
    assert (status.errors, status.error) == ((), "ValueError: no")


def test_progress_is_seen_in_the_status(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)
    go: list[int] = []

    @app.task(name="count")
    def count(job: JobContext) -> None:
        for done in range(100):
            job.progress(done, f"page {done}", total=100, data={"at": done})
        while not go:
            job.check()

    job = count.put()
    with app.worker(heartbeat_s=None), Runner():
        seen: Any = None
        for status in job.watch(poll_interval_s=0.02):
            seen = status.progress
            if seen is not None and seen["done"] == 99:
                break
        go.append(1)
    assert seen == {"done": 99, "total": 100, "note": "page 99", "data": {"at": 99}}


def test_a_job_is_followed_until_it_has_ended(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)

    @app.task(name="send")
    def send() -> str:
        return "sent"

    job = send.put()
    seen: list[JobStatus] = []
    for status in job.watch(poll_interval_s=0.02):
        seen.append(status)
        if len(seen) == 1:
            run(app)
    assert [seen[0].state, seen[-1].state] == ["waiting", "done"]
