"""What a worker says in the log: one line per job, with what happens next, and nothing dies without an error."""

import logging

import pytest

from holdfast import Backoff, Bury, Snooze
from holdfast._async.handles.tasks import AsyncTasks
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


async def handle(value: str) -> None:
    match value:
        case "boom":
            raise KeyError("boom")
        case "bad":
            raise Bury("no such picture")
        case "later":
            raise Snooze(3600.0, "too early")


async def log_of(value: str, client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture, runs: int = 1) -> list[str]:
    """The lines about one job, in so many runs a minute apart."""
    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=2, backoff=Backoff(first_s=2.0, jitter=0.0))
    with caplog.at_level(logging.INFO, "holdfast.worker"):
        await worker.put(value, id="one")
        for _ in range(runs):
            await worker.run(until_empty=True)
            clock.advance(60.0)
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.getMessage().startswith("job ")]


async def test_a_job_that_is_done_is_one_line(client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    (line,) = await log_of("fine", client, clock, caplog)
    assert line == "INFO job one of queue 'jobs' is done in 0 s"


async def test_a_failure_says_which_attempt_it_was_and_when_the_next_is_and_the_last_is_an_error(
    client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    assert await log_of("boom", client, clock, caplog, runs=2) == [
        "WARNING job one of queue 'jobs' failed (attempt 1 of 2), again in 2 s: KeyError: 'boom'",
        "ERROR job one of queue 'jobs' failed (attempt 2 of 2) and is dead: KeyError: 'boom'",
    ]


async def test_a_traceback_begins_in_the_function_of_the_worker(
    client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    await log_of("boom", client, clock, caplog)
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.exc_info is not None
    trace = record.exc_info[2]
    assert trace is not None
    assert trace.tb_frame.f_code.co_name == "handle"


async def test_a_buried_job_is_an_error_with_its_reason(
    client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    assert await log_of("bad", client, clock, caplog) == ["ERROR job one of queue 'jobs' is buried: no such picture"]


async def test_a_snoozed_job_says_when_it_is_asked_again(
    client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    assert await log_of("later", client, clock, caplog) == ["INFO job one of queue 'jobs' snoozes, again in 3,600 s: too early"]


async def test_a_worker_says_what_it_does_when_it_begins_and_what_it_did_when_it_ends(
    client: ControlPlaneClient, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    await log_of("fine", client, clock, caplog)
    first, *_, last = [record.getMessage() for record in caplog.records if record.name == "holdfast.worker"]
    assert f"begins: {handle.__module__}.handle for queue 'jobs', 1 at once in " in first
    assert last.endswith("has stopped: 1 done, 0 failed")


async def test_a_worker_warns_of_a_queue_for_which_it_has_no_function(client: ControlPlaneClient, caplog: pytest.LogCaptureFixture) -> None:
    app = AsyncTasks(client=client, queue="high")
    app.task(name="handle")(handle)
    await app.run(until_empty=True, queues=["hihg", "high"])
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.endswith("serves queue 'hihg', for which it has no function: those that it has are for 'high'")
