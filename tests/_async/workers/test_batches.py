"""Functions that take several jobs in one call: each job keeps its own lease, attempts and result."""

from typing import Any

import pytest

from holdfast import BatchFailed, Bury, JobFailed, Snooze
from holdfast._async.handles.tasks import AsyncTasks
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncRunner

pytestmark = pytest.mark.anyio


async def test_one_call_takes_up_to_size_jobs_and_each_has_its_result(client: ControlPlaneClient) -> None:
    app, calls = AsyncTasks(client=client), list[list[str]]()

    @app.batch(size=4, queue="pages")
    async def index(pages: list[str]) -> list[int]:
        calls.append(pages)
        return [len(page) for page in pages]

    jobs = await index.put_many([index.args("x" * number) for number in range(10)])
    await app.run(until_empty=True, signals=False)
    assert sorted(map(len, calls)) == [2, 4, 4]
    assert [await job.result(timeout_s=0) for job in jobs] == list(range(10))


async def test_jobs_that_failed_are_named_and_the_others_are_done(client: ControlPlaneClient) -> None:
    app, calls = AsyncTasks(client=client, max_attempts=2), list[list[int]]()

    @app.batch(queue="numbers")
    async def halve(numbers: list[int]) -> list[int]:
        calls.append(numbers)
        odd: dict[int, BaseException] = {place: ValueError("odd") for place, number in enumerate(numbers) if number % 2}
        odd |= {place: Bury("zero") for place, number in enumerate(numbers) if number == 0}
        if odd:
            raise BatchFailed(odd, results=[number // 2 for number in numbers])
        return [number // 2 for number in numbers]

    jobs = await halve.put_many([halve.args(number) for number in (0, 1, 2, 4)])
    await app.run(until_empty=True, signals=False)
    assert [await job.result(timeout_s=0) for job in jobs[2:]] == [1, 2]
    with pytest.raises(JobFailed, match="zero"):
        await jobs[0].result(timeout_s=0)
    status = await jobs[1].status()
    assert (status.state, status.failures, [error.type for error in status.errors]) == ("retrying", 1, ["ValueError"])
    assert calls == [[0, 1, 2, 4]]


async def test_what_else_it_raises_counts_for_all(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)

    @app.batch(queue="numbers")
    async def fail(numbers: list[int]) -> None:
        if 3 in numbers:
            raise Snooze(60.0)
        raise ConnectionError("no index")

    jobs = await fail.put_many([fail.args(1), fail.args(2)])
    await app.run(until_empty=True, signals=False)
    assert [(await job.status()).failures for job in jobs] == [1, 1]
    snoozed = await fail.put(3)
    await app.run(until_empty=True, signals=False)
    assert ((await snoozed.status()).state, (await snoozed.status()).failures) == ("delayed", 0)


@pytest.mark.parametrize("answer", [[1], {0: 1}, 7])
async def test_an_answer_that_does_not_fit_fails_all(answer: Any, client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)

    @app.batch(queue="numbers")
    async def wrong(numbers: list[int]) -> list[int]:
        found: list[int] = answer
        return found

    jobs = await wrong.put_many([wrong.args(1), wrong.args(2)])
    await app.run(until_empty=True, signals=False)
    said = [(await job.status()).errors[0].message for job in jobs]
    assert all("return a list with one result for each" in one for one in said)


async def test_places_that_the_batch_does_not_have_fail_all(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)

    @app.batch(queue="numbers")
    async def wrong(numbers: list[int]) -> None:
        raise BatchFailed({2: ValueError()})

    jobs = await wrong.put_many([wrong.args(1), wrong.args(2)])
    await app.run(until_empty=True, signals=False)
    said = [(await job.status()).errors[0].message for job in jobs]
    assert all("the batch has 2 jobs" in one for one in said)


async def test_a_job_that_does_not_fit_ends_alone(client: ControlPlaneClient) -> None:
    app, calls = AsyncTasks(client=client), list[list[int]]()

    @app.batch(queue="numbers", name="add", results=True)
    async def add(numbers: list[int]) -> None:
        calls.append(numbers)

    other = AsyncTasks(client=client)

    @other.batch(queue="numbers", name="add")
    async def add_text(numbers: list[str]) -> None: ...

    jobs = [await add.put(1), await add_text.put("x"), await add.put(2)]
    await app.run(until_empty=True, signals=False)
    assert calls == [[1, 2]]
    assert [(await job.status()).state for job in jobs] == ["done", "dead", "done"]


async def test_it_waits_for_more_within_s_of_the_first(client: ControlPlaneClient, clock: FakeClock) -> None:
    app, runner = AsyncTasks(client=client), AsyncRunner()
    calls: list[list[int]] = []

    @app.batch(size=3, within_s=5.0, queue="numbers")
    async def add(numbers: list[int]) -> None:
        calls.append(numbers)

    worker = app.worker(poll_interval_s=0.05)
    await worker.start()
    await add.put(1)
    await runner.until(lambda: worker._shift is not None and len(worker._shift._crews[0].running) == 1)
    assert calls == []
    second, third = await add.put(2), await add.put(3)
    await runner.until(lambda: calls == [[1, 2, 3]])
    await add.put(4)
    await runner.until(lambda: worker._shift is not None and len(worker._shift._crews[0].running) == 1)
    clock.advance(5.0)
    await runner.until(lambda: calls == [[1, 2, 3], [4]])
    await worker.stop()
    assert [(await job.status()).state for job in (second, third)] == ["done", "done"]


async def test_what_waits_for_a_batch_is_given_back_at_the_end_and_burns_nothing(client: ControlPlaneClient) -> None:
    app, runner = AsyncTasks(client=client), AsyncRunner()

    @app.batch(size=3, within_s=500.0, queue="numbers")
    async def add(numbers: list[int]) -> None: ...

    worker = app.worker()
    await worker.start()
    job = await add.put(1)
    await runner.until(lambda: worker._shift is not None and len(worker._shift._crews[0].running) == 1)
    await worker.stop()
    status = await job.status()
    assert (status.state, status.failures) == ("waiting", 0)


async def test_batches_and_other_tasks_share_a_queue_and_its_seats(client: ControlPlaneClient) -> None:
    app, order = AsyncTasks(client=client), list[Any]()

    @app.batch(size=5)
    async def add(numbers: list[int]) -> None:
        order.append(len(numbers))

    @app.task
    async def single(number: int) -> None:
        order.append(number)

    for number in range(100, 110):
        await add.put(number)
        await single.put(number)
    await app.run(until_empty=True, signals=False)
    assert sum(one for one in order if one < 100) == 10
    assert sorted(one for one in order if one >= 100) == list(range(100, 110))


async def test_a_batch_has_one_seat_beside_other_queues(client: ControlPlaneClient) -> None:
    app, order = AsyncTasks(client=client), list[Any]()

    @app.batch(size=50, queue="many")
    async def add(numbers: list[int]) -> None:
        order.append(len(numbers))

    @app.task(queue="few")
    async def single(number: int) -> None:
        order.append("single")

    await add.put_many([add.args(number) for number in range(100)])
    await single.put_many([single.args(number) for number in range(4)])
    await app.run(queues={"many": 1, "few": 1}, concurrency=2, until_empty=True, signals=False)
    assert sorted(map(str, order)) == ["50", "50", *["single"] * 4]
