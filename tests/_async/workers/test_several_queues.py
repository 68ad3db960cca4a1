"""One worker for several queues: they share its concurrency, in order or by weight."""

from typing import Any

import pytest

from holdfast import JobContext
from holdfast._async.flows.working.shift import AsyncShift
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.tasks import AsyncTasks
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Claim, Count, Together
from holdfast.workers.running.places import OnlyPlace
from tests.runners import AsyncRunner
from tests.workers.detours import Detour

pytestmark = pytest.mark.anyio


class Started:
    """Tasks of several queues that write down what was started, in order."""

    def __init__(self, client: ControlPlaneClient, *queues: str) -> None:
        self.order: list[str] = []
        self.now = self.most = 0
        self.app = AsyncTasks("shop", client=client)
        self.tasks = {queue: self.app.task(name=queue, queue=queue, results=False)(self._run_for(queue)) for queue in queues}

    def _run_for(self, queue: str) -> Any:
        async def run(number: int = 0) -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            self.order.append(queue)
            self.now -= 1

        return run

    async def put(self, queue: str, count: int) -> None:
        task = self.tasks[queue]
        await task.put_many([task.args(number) for number in range(count)])

    async def run(self, **options: Any) -> None:
        await self.app.run(until_empty=True, signals=False, heartbeat_s=None, **options)


def without_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every queue claim for itself, as if it were the only one."""

    def places(shift: AsyncShift, max_jobs: int | None) -> Any:
        return [OnlyPlace(shift._store, crew.queue, shift.incarnation, max_jobs) for crew in shift._crews]

    monkeypatch.setattr(AsyncShift, "_places", places)


async def test_in_order_no_job_of_a_later_queue_starts_while_an_earlier_one_has_work(client: ControlPlaneClient) -> None:
    started = Started(client, "low", "high")
    await started.put("low", 20)
    await started.put("high", 30)
    await started.run(queues=["high", "low"], concurrency=3)
    assert started.order == ["high"] * 30 + ["low"] * 20


async def test_control_without_seats_a_later_queue_does_not_wait(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    without_seats(monkeypatch)
    started, runner = Started(client, "low"), AsyncRunner()

    @started.app.task(name="high", queue="high", results=False)
    async def high() -> None:
        await runner.until(lambda: "low" in started.order or client.store.execute(Count("low")).leased == 1)
        started.order.append("high")

    await high.put()
    await started.put("low", 1)
    async with started.app.worker(queues=["high", "low"], concurrency=1, heartbeat_s=None), runner:
        await runner.until(lambda: len(started.order) == 2)


async def test_a_job_that_comes_for_an_earlier_queue_gets_the_next_seat(client: ControlPlaneClient) -> None:
    started = Started(client, "high")

    @started.app.task(name="low", queue="low")
    async def low(number: int) -> None:
        started.order.append("low")
        if number == 5:
            await started.put("high", 1)

    await low.put_many([low.args(number) for number in range(40)])
    await started.run(queues=["high", "low"])
    assert len(started.order) == 41
    # Over a network, or on a busy machine, the hint may come some jobs later; without it, it would be the last.
    assert 6 <= started.order.index("high") < 36


async def test_by_weight_each_queue_has_its_share_of_the_starts(client: ControlPlaneClient) -> None:
    started = Started(client, "a", "b")
    for queue in ("b", "a"):
        await started.put(queue, 400)
    await started.run(queues={"a": 3, "b": 1}, concurrency=5)
    # Of jobs that take no time it is the claims that count: see test_seats.py for those that take equally long.
    assert 220 <= started.order[:400].count("a") <= 350
    assert started.most <= 5


async def test_a_queue_alone_gets_every_seat_whatever_its_weight(client: ControlPlaneClient) -> None:
    started = Started(client, "a", "b")
    await started.put("b", 50)
    await started.run(queues={"a": 99, "b": 1}, concurrency=4)
    assert started.order == ["b"] * 50


async def test_a_dry_queue_is_not_asked_for_every_job_of_another(client: ControlPlaneClient) -> None:
    started = Started(client, "high", "low")
    await started.put("low", 200)
    asked: list[str] = []
    execute = client.async_store.execute

    async def counted(command: Any) -> Any:
        parts = command.commands if isinstance(command, Together) else [command]
        asked.extend(part.queue for part in parts if isinstance(part, Claim))
        return await execute(command)

    shift = started.app.worker(queues=["high", "low"], heartbeat_s=None)._begin(until_empty=True)
    for queue in shift._queues:
        queue._store = Detour(client.async_store, counted)
    await shift.run()
    assert len(started.order) == 200
    assert asked.count("high") < 20
    assert asked.count("low") >= 200


async def test_jobs_that_put_each_other_across_queues_are_all_run(client: ControlPlaneClient) -> None:
    app = AsyncTasks("shop", client=client)
    seen: list[tuple[str, int]] = []

    @app.task(name="ping", queue="a")
    def ping(job: JobContext, left: int) -> None:
        seen.append(("ping", left))
        if left:
            job.put("b", {"left": left - 1}, metadata={"task": "pong"})

    @app.task(name="pong", queue="b")
    def pong(job: JobContext, left: int) -> None:
        seen.append(("pong", left))
        if left:
            job.put("a", {"left": left - 1}, metadata={"task": "ping"})

    await ping.put(9)
    await app.run(until_empty=True, signals=False, heartbeat_s=None)
    assert seen == [("ping" if left % 2 else "pong", left) for left in range(9, -1, -1)]


@pytest.mark.parametrize("queues", [["a", "b"], {"a": 1, "b": 1}])
async def test_so_many_jobs_are_run_of_all_queues_together(client: ControlPlaneClient, queues: Any) -> None:
    started = Started(client, "a", "b")
    for queue in ("a", "b"):
        await started.put(queue, 10)
    await started.app.run(queues=queues, max_jobs=13, signals=False, heartbeat_s=None, concurrency=4)
    assert len(started.order) == 13


async def test_a_job_of_any_of_its_queues_is_cancelled_and_all_are_in_the_registry(client: ControlPlaneClient) -> None:
    app = AsyncTasks("shop", client=client)
    begun: list[str] = []

    @app.task(name="first", queue="a")
    def first() -> None: ...

    @app.task(name="long", queue="b", results=True)
    def long(job: JobContext) -> None:
        begun.append(job.id)
        while True:
            job.check()

    async with app.worker(name="one") as worker, AsyncRunner() as runner:
        job = await long.put()
        await runner.until(lambda: bool(begun))
        (info,) = await AsyncWorker.list(client=client)
        assert (info.queues, info.serves("b"), info.serves("c")) == (("a", "b"), True, False)
        assert await job.cancel() == "requested"
        await runner.until(lambda: not worker.health.running)
    assert (await job.status()).state == "cancelled"


async def test_a_consumer_of_each_queue_gets_its_own_values(client: ControlPlaneClient) -> None:
    app = AsyncTasks("shop", client=client)
    seen: list[tuple[str, Any]] = []

    @app.consumer("a")
    def of_a(value: int) -> None:
        seen.append(("a", value))

    @app.consumer("b")
    def of_b(value: int) -> None:
        seen.append(("b", value))

    for queue in ("a", "b"):
        await AsyncQueue[int](queue, client=client).put(1)
    await app.run(until_empty=True, signals=False, heartbeat_s=None)
    assert sorted(seen) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("queues", "error"),
    [
        (["a", "a"], "each once"),
        ([], "at least one queue"),
        ([f"q{number}" for number in range(33)], "at most 32 queues.*fair group"),
        ({"a": 0, "b": 1}, "weight of queue 'a' must be a number more than 0"),
        ({"a": True, "b": 1}, "weight of queue 'a'"),
    ],
)
@pytest.mark.parametrize("client", ["memory"], indirect=True)
async def test_queues_that_make_no_sense_are_refused(client: ControlPlaneClient, queues: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        AsyncTasks("shop", client=client).worker(queues=queues)


@pytest.mark.parametrize("client", ["memory"], indirect=True)
async def test_what_is_for_one_queue_is_refused_for_several(client: ControlPlaneClient) -> None:
    app = AsyncTasks("shop", client=client)
    with pytest.raises(TypeError, match=r"write queues=\['high'\]"):
        app.worker(queues="high")
    with pytest.raises(ValueError, match="prefetch= is for a worker of one queue"):
        app.worker(queues=["a", "b"], prefetch=5)
    with pytest.raises(ValueError, match="min_interval_s= is for a worker of one queue"):
        app.worker(queues=["a", "b"], min_interval_s=1.0)
    with pytest.raises(ValueError, match="no task"):
        app.worker()
