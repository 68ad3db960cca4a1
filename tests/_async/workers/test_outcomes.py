"""How a handler ends decides what becomes of its message."""

from typing import Any

import pytest

from holdfast import Backoff, Bury, JobContext, JobFailed, QueueFull, ResultMissing, Retry, Snooze
from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncRunner

pytestmark = pytest.mark.anyio


async def test_a_message_is_gone_once_its_handler_returned(client: ControlPlaneClient) -> None:
    seen: list[int] = []

    async def handle(value: int) -> None:
        seen.append(value)

    worker = AsyncWorker(handle, "jobs", client=client)
    await worker.put_many([1, 2, 3])
    await worker.run(until_empty=True)
    assert seen == [1, 2, 3]
    assert (await AsyncQueue[int]("jobs", client=client).stats()).total == 0
    assert (worker.health.done, worker.health.state) == (3, "stopped")


async def test_a_handler_that_asks_for_its_job_is_given_it(client: ControlPlaneClient) -> None:
    seen: list[Any] = []

    async def handle(value: int, job: JobContext) -> None:
        seen.append((value, job.value, job.id, job.attempts, job.failures, job.key, job.metadata))

    worker = AsyncWorker(handle, "jobs", client=client)
    await worker.put(7, id="seven", key="k", metadata={"from": "a test"})
    await worker.run(until_empty=True)
    assert seen == [(7, 7, "seven", 1, 0, "k", {"from": "a test"})]


async def test_the_first_parameter_is_the_value_whatever_it_is_called(client: ControlPlaneClient) -> None:
    seen: list[int] = []

    async def handle(job: int) -> None:
        seen.append(job)

    worker = AsyncWorker(handle, "jobs", client=client)
    await worker.put(7)
    await worker.run(until_empty=True)
    assert seen == [7]


async def test_a_failure_waits_in_the_store_and_is_tried_again(client: ControlPlaneClient, clock: FakeClock) -> None:
    attempts: list[int] = []

    async def handle(value: int, job: JobContext) -> None:
        attempts.append(job.attempts)
        if job.attempts < 3:
            raise ValueError("not yet")

    worker = AsyncWorker(handle, "jobs", client=client, backoff=Backoff(10.0, 3.0, 1000.0, jitter=0.0))
    queue = AsyncQueue[int]("jobs", client=client)
    await worker.put(1)
    await worker.run(until_empty=True)
    assert (await queue.stats()).delayed == 1
    clock.advance(9.9)
    await worker.run(until_empty=True)
    assert attempts == [1]
    clock.advance(0.2)
    await worker.run(until_empty=True)
    assert attempts == [1, 2]
    clock.advance(29.0)
    await worker.run(until_empty=True)
    assert attempts == [1, 2]
    clock.advance(1.1)
    await worker.run(until_empty=True)
    assert attempts == [1, 2, 3]
    assert (await queue.stats()).total == 0


async def test_jobs_that_failed_together_do_not_come_back_together(client: ControlPlaneClient, clock: FakeClock) -> None:
    async def handle(value: int) -> None:
        raise ValueError("the server is down")

    worker = AsyncWorker(handle, "jobs", client=client, concurrency=8)
    queue = AsyncQueue[int]("jobs", client=client)
    await worker.put_many(range(8))
    await worker.run(until_empty=True)
    assert len({message.due_at for message in await queue.browse()}) > 4
    clock.advance(0.4)
    assert (await queue.stats()).delayed == 8
    clock.advance(0.6)
    assert (await queue.stats()).ready == 8


async def test_a_message_is_dead_at_its_budget_and_keeps_the_error(client: ControlPlaneClient, clock: FakeClock) -> None:
    async def handle(value: int) -> None:
        raise ValueError(f"no {value} today")

    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=2, backoff=Backoff(0.0, jitter=0.0))
    await worker.put(1)
    await worker.put(2, max_attempts=1)
    await worker.run(until_empty=True)
    letters = await AsyncQueue[int]("jobs", client=client).dead_letters()
    assert sorted((one.value, one.failures, one.last_error) for one in letters) == [
        (1, 2, "ValueError: no 1 today"),
        (2, 1, "ValueError: no 2 today"),
    ]


async def test_a_dead_letter_goes_to_its_queue(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        raise ValueError("never")

    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=1, dead_letter_queue="dead")
    await worker.put(1)
    await worker.run(until_empty=True)
    claim = await AsyncQueue[int]("dead", client=client).claim(claimer="me")
    assert claim is not None
    assert claim.metadata is not None
    assert claim.metadata["dead_letter"]["error"] == "ValueError: never"


async def test_a_snooze_comes_back_later_and_burns_nothing(client: ControlPlaneClient, clock: FakeClock) -> None:
    failures: list[int] = []

    async def handle(value: int, job: JobContext) -> None:
        failures.append(job.failures)
        if len(failures) < 5:
            raise Snooze(60.0)

    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=1)
    await worker.put(1)
    for _ in range(5):
        await worker.run(until_empty=True)
        clock.advance(60.0)
    assert failures == [0] * 5
    assert (await AsyncQueue[int]("jobs", client=client).stats()).total == 0


async def test_a_retry_says_when_and_a_burial_ends_it_at_once(client: ControlPlaneClient, clock: FakeClock) -> None:
    async def handle(value: str) -> None:
        if value == "retry":
            raise Retry("busy", delay_s=5.0)
        raise Bury("nonsense")

    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=9)
    await worker.put_many(["retry", "bury"])
    await worker.run(until_empty=True)
    queue = AsyncQueue[str]("jobs", client=client)
    assert [(one.value, one.last_error) for one in await queue.dead_letters()] == [("bury", "nonsense")]
    clock.advance(4.9)
    assert (await queue.stats()).delayed == 1
    clock.advance(0.2)
    assert (await queue.stats()).ready == 1


async def test_a_judge_decides_what_an_exception_means(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        raise KeyError(value)

    def judge(error: BaseException, job: JobContext) -> BaseException | None:
        return Bury(f"{type(error).__name__} of {job.value}") if isinstance(error, KeyError) else None

    worker = AsyncWorker(handle, "jobs", client=client, judge=judge)
    await worker.put(4)
    await worker.run(until_empty=True)
    assert [one.last_error for one in await AsyncQueue[int]("jobs", client=client).dead_letters()] == ["KeyError of 4"]


async def test_a_result_is_there_with_the_acknowledgement_and_until_its_time_is_over(client: ControlPlaneClient, clock: FakeClock) -> None:
    async def double(value: int) -> int:
        return 2 * value

    worker = AsyncWorker(double, "jobs", client=client, results=True, keep_result_s=60.0)
    job = await worker.put(21)
    with pytest.raises(TimeoutError):
        await job.result(timeout_s=0)
    async with AsyncRunner() as runner:
        waiting = runner.start(job.result)
        await worker.run(until_empty=True)
        assert await waiting.result() == 42
    clock.advance(61.0)
    with pytest.raises(ResultMissing, match="is gone without a result"):
        await job.result()


async def test_a_failed_job_has_no_result_and_says_why(client: ControlPlaneClient) -> None:
    async def handle(value: int) -> None:
        raise ValueError("never")

    for results in (True, False):
        worker = AsyncWorker(handle, f"jobs {results}", client=client, max_attempts=1, results=results)
        job = await worker.put(1)
        await worker.run(until_empty=True)
        with pytest.raises(JobFailed, match="ValueError: never"):
            await job.result()


async def test_what_a_job_puts_and_writes_happens_with_its_end(client: ControlPlaneClient) -> None:
    async def handle(value: int, job: JobContext) -> None:
        job.put("next", value + 1)
        job.write("totals", "sum", value)
        if value < 0:
            raise ValueError("no")

    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=1)
    await worker.put_many([5, -1])
    await worker.run(until_empty=True)
    assert await AsyncQueue[int]("next", client=client).get_many(10) == [6]
    assert await AsyncDict[int]("totals", client=client).get("sum") == 5


async def test_a_job_whose_followers_are_refused_has_failed(client: ControlPlaneClient) -> None:
    full = await AsyncQueue.create("next", maxsize=1, client=client)
    await full.put("first")

    async def handle(value: int, job: JobContext) -> None:
        job.put("next", value)

    worker = AsyncWorker(handle, "jobs", client=client, max_attempts=1)
    await worker.put(1)
    await worker.run(until_empty=True)
    (letter,) = await AsyncQueue[int]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith(QueueFull.__name__)


async def test_a_value_that_does_not_fit_its_type_is_dead_at_its_budget(client: ControlPlaneClient) -> None:
    from holdfast.codec import typed

    async def handle(value: int) -> None:
        raise AssertionError("not reached")

    worker = AsyncWorker(handle, "jobs", client=client, codec=typed(int), max_attempts=1)
    await AsyncQueue[str]("jobs", client=client).put("text")
    await worker.run(until_empty=True)
    (letter,) = await AsyncQueue[Any]("jobs", client=client).dead_letters()
    assert "does not fit int" in (letter.last_error or "")
