"""What `Job.status` says over the life of a job."""

from typing import Any

import pytest

from holdfast import Backoff, Bury, JobContext
from holdfast._async.handles.job import AsyncJob
from holdfast._async.handles.tasks import AsyncTasks
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


async def run(app: AsyncTasks) -> None:
    await app.run(until_empty=True, signals=False, heartbeat_s=None, name="me")


async def test_a_job_waits_fails_is_tried_again_and_is_done(client: ControlPlaneClient, clock: FakeClock) -> None:
    app = AsyncTasks(client=client, backoff=Backoff(first_s=5.0, jitter=0.0))
    seen: list[Any] = []

    @app.task(name="send")
    async def send(job: JobContext, to: str) -> str:
        job.report(0.5)
        if job.attempts == 1:
            raise ValueError("not now")
        return to

    job = await send.using(delay_s=1.0).put("ann")
    seen.append(await job.status())
    clock.advance(1.0)
    seen.append(await job.status())
    await run(app)
    seen.append(await job.status())
    clock.advance(5.0)
    await run(app)
    seen.append(await job.status())
    assert [one.state for one in seen] == ["delayed", "waiting", "retrying", "done"]
    assert [(one.task, one.attempts, one.failures, one.error) for one in seen] == [
        ("send", 0, 0, None),
        ("send", 0, 0, None),
        ("send", 1, 1, "ValueError: not now"),
        (None, 0, 0, None),
    ]
    assert (seen[0].due_at - seen[0].enqueued_at).total_seconds() == pytest.approx(1.0)
    assert (seen[2].due_at - seen[2].started_at).total_seconds() == pytest.approx(5.0)


async def test_a_running_job_says_who_runs_it_and_how_it_sees_itself(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)
    seen: list[Any] = []

    @app.task(name="send")
    async def send(job: JobContext) -> None:
        seen.append(await AsyncJob[Any](job.queue, job.id, client=client).status())

    await send.put()
    await run(app)
    assert [(one.state, one.attempts, one.worker.split("/")[0]) for one in seen] == [("running", 1, "me")]


async def test_a_dead_job_can_be_tried_again(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)
    is_fixed = False

    @app.task(name="send")
    def send() -> int:
        if not is_fixed:
            raise Bury("broken")
        return 7

    job = await send.put()
    assert not await job.retry()
    await run(app)
    status = await job.status()
    assert (status.state, status.error, status.finished_at is not None) == ("dead", "broken", True)
    is_fixed = True
    assert await job.retry()
    await run(app)
    assert await job.result(timeout_s=0) == 7


async def test_a_job_that_was_cancelled_or_never_was_says_so(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)

    @app.task(name="send")
    def send() -> None: ...

    job, other = await send.put(), await send.put()
    assert await job.cancel() == "cancelled"
    assert (await job.status()).state == "cancelled"
    await run(app)
    assert (await other.status()).state == "done"
    assert (await send.job("nothing").status()).state == "gone"
