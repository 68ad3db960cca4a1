"""`most=`: how many jobs of a task run at once in a worker."""

from typing import Any

import pytest

from holdfast._async.handles.tasks import AsyncTasks
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncGate, AsyncRunner

pytestmark = pytest.mark.anyio


async def test_no_more_than_so_many_run_at_once_and_all_are_done(client: ControlPlaneClient) -> None:
    app, now, seen = AsyncTasks(client=client), list[int](), list[int]()

    @app.task(most=2)
    async def heavy(number: int) -> int:
        now.append(number)
        seen.append(len(now))
        now.remove(number)
        return number

    jobs = await heavy.put_many([heavy.args(number) for number in range(20)])
    await app.run(concurrency=8, until_empty=True, signals=False)
    assert max(seen) <= 2
    assert [await job.result(timeout_s=0) for job in jobs] == list(range(20))


async def test_others_have_the_seats_meanwhile_and_nothing_is_burnt(client: ControlPlaneClient, clock: FakeClock) -> None:
    app, runner, gate = AsyncTasks(client=client), AsyncRunner(), AsyncGate()
    ran: list[Any] = []

    @app.task(most=1)
    async def heavy(number: int) -> None:
        ran.append(number)
        await gate.wait()

    @app.task
    async def light(number: int) -> None:
        ran.append("light")

    jobs = await heavy.put_many([heavy.args(number) for number in range(3)])
    worker = app.worker(concurrency=3, poll_interval_s=0.05, lease_s=3_600.0)
    await worker.start()
    await light.put_many([light.args(number) for number in range(5)])
    await runner.until(lambda: ran.count("light") == 5)
    assert [one for one in ran if one != "light"] == [0]
    gate.open()

    def all_ran() -> bool:
        clock.advance(0.2)
        return len(ran) == 8

    await runner.until(all_ran)
    await worker.stop()
    assert [(await job.status()).failures for job in jobs] == [0, 0, 0]


async def test_a_number_that_is_none_is_refused(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)
    with pytest.raises(ValueError, match="most"):
        app.task(most=0)(print_it)
    app.task(most=2)(print_it)
    with pytest.raises(ValueError, match="prefetch= with most=, rate= or a batch"):
        app.worker(prefetch=5)


def print_it(number: int) -> None: ...
