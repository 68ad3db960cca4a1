# Generated from tests/_async/workers/test_several_queues.py by tools/unasync.py; do not edit.
"""One worker for several queues: they share its concurrency, in order or by weight."""

from typing import Any

import pytest

from holdfast import JobContext
from holdfast._sync.flows.working.shift import Shift
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.tasks import Tasks
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Claim, Count, Together
from holdfast.workers.running.places import OnlyPlace
from tests.runners import Runner
from tests.workers.detours import Detour


class Started:
    """Tasks of several queues that write down what was started, in order."""

    def __init__(self, client: ControlPlaneClient, *queues: str) -> None:
        self.order: list[str] = []
        self.now = self.most = 0
        self.app = Tasks("shop", client=client)
        self.tasks = {queue: self.app.task(name=queue, queue=queue, results=False)(self._run_for(queue)) for queue in queues}

    def _run_for(self, queue: str) -> Any:
        def run(number: int = 0) -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            self.order.append(queue)
            self.now -= 1

        return run

    def put(self, queue: str, count: int) -> None:
        task = self.tasks[queue]
        task.put_many([task.args(number) for number in range(count)])

    def run(self, **options: Any) -> None:
        self.app.run(until_empty=True, signals=False, heartbeat_s=None, **options)


def without_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every queue claim for itself, as if it were the only one."""

    def places(shift: Shift, max_jobs: int | None) -> Any:
        return [OnlyPlace(shift._store, crew.queue, shift.incarnation, max_jobs) for crew in shift._crews]

    monkeypatch.setattr(Shift, "_places", places)


def test_in_order_no_job_of_a_later_queue_starts_while_an_earlier_one_has_work(client: ControlPlaneClient) -> None:
    started = Started(client, "low", "high")
    started.put("low", 20)
    started.put("high", 30)
    started.run(queues=["high", "low"], concurrency=3)
    assert started.order == ["high"] * 30 + ["low"] * 20


def test_control_without_seats_a_later_queue_does_not_wait(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    without_seats(monkeypatch)
    started, runner = Started(client, "low"), Runner()

    @started.app.task(name="high", queue="high", results=False)
    def high() -> None:
        runner.until(lambda: "low" in started.order or client.store.execute(Count("low")).leased == 1)
        started.order.append("high")

    high.put()
    started.put("low", 1)
    with started.app.worker(queues=["high", "low"], concurrency=1, heartbeat_s=None), runner:
        runner.until(lambda: len(started.order) == 2)


def test_a_job_that_comes_for_an_earlier_queue_gets_the_next_seat(client: ControlPlaneClient) -> None:
    started = Started(client, "high")

    @started.app.task(name="low", queue="low")
    def low(number: int) -> None:
        started.order.append("low")
        if number == 5:
            started.put("high", 1)

    low.put_many([low.args(number) for number in range(40)])
    started.run(queues=["high", "low"])
    assert len(started.order) == 41
    # Over a network, or on a busy machine, the hint may come some jobs later; without it, it would be the last.
    assert 6 <= started.order.index("high") < 36


def test_by_weight_each_queue_has_its_share_of_the_starts(client: ControlPlaneClient) -> None:
    started = Started(client, "a", "b")
    for queue in ("b", "a"):
        started.put(queue, 400)
    started.run(queues={"a": 3, "b": 1}, concurrency=5)
    # Of jobs that take no time it is the claims that count: see test_seats.py for those that take equally long.
    assert 220 <= started.order[:400].count("a") <= 350
    assert started.most <= 5


def test_a_queue_alone_gets_every_seat_whatever_its_weight(client: ControlPlaneClient) -> None:
    started = Started(client, "a", "b")
    started.put("b", 50)
    started.run(queues={"a": 99, "b": 1}, concurrency=4)
    assert started.order == ["b"] * 50


def test_a_dry_queue_is_not_asked_for_every_job_of_another(client: ControlPlaneClient) -> None:
    started = Started(client, "high", "low")
    started.put("low", 200)
    asked: list[str] = []
    execute = client.store.execute

    def counted(command: Any) -> Any:
        parts = command.commands if isinstance(command, Together) else [command]
        asked.extend(part.queue for part in parts if isinstance(part, Claim))
        return execute(command)

    shift = started.app.worker(queues=["high", "low"], heartbeat_s=None)._begin(until_empty=True)
    for queue in shift._queues:
        queue._store = Detour(client.store, counted)
    shift.run()
    assert len(started.order) == 200
    assert asked.count("high") < 20
    assert asked.count("low") >= 200


def test_jobs_that_put_each_other_across_queues_are_all_run(client: ControlPlaneClient) -> None:
    app = Tasks("shop", client=client)
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

    ping.put(9)
    app.run(until_empty=True, signals=False, heartbeat_s=None)
    assert seen == [("ping" if left % 2 else "pong", left) for left in range(9, -1, -1)]


@pytest.mark.parametrize("queues", [["a", "b"], {"a": 1, "b": 1}])
def test_so_many_jobs_are_run_of_all_queues_together(client: ControlPlaneClient, queues: Any) -> None:
    started = Started(client, "a", "b")
    for queue in ("a", "b"):
        started.put(queue, 10)
    started.app.run(queues=queues, max_jobs=13, signals=False, heartbeat_s=None, concurrency=4)
    assert len(started.order) == 13


def test_a_job_of_any_of_its_queues_is_cancelled_and_all_are_in_the_registry(client: ControlPlaneClient) -> None:
    app = Tasks("shop", client=client)
    begun: list[str] = []

    @app.task(name="first", queue="a")
    def first() -> None: ...

    @app.task(name="long", queue="b", results=True)
    def long(job: JobContext) -> None:
        begun.append(job.id)
        while True:
            job.check()

    with app.worker(name="one") as worker, Runner() as runner:
        job = long.put()
        runner.until(lambda: bool(begun))
        (info,) = Worker.list(client=client)
        assert (info.queues, info.serves("b"), info.serves("c")) == (("a", "b"), True, False)
        assert job.cancel() == "requested"
        runner.until(lambda: not worker.health.running)
    assert (job.status()).state == "cancelled"


def test_a_consumer_of_each_queue_gets_its_own_values(client: ControlPlaneClient) -> None:
    app = Tasks("shop", client=client)
    seen: list[tuple[str, Any]] = []

    @app.consumer("a")
    def of_a(value: int) -> None:
        seen.append(("a", value))

    @app.consumer("b")
    def of_b(value: int) -> None:
        seen.append(("b", value))

    for queue in ("a", "b"):
        Queue[int](queue, client=client).put(1)
    app.run(until_empty=True, signals=False, heartbeat_s=None)
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
def test_queues_that_make_no_sense_are_refused(client: ControlPlaneClient, queues: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Tasks("shop", client=client).worker(queues=queues)


@pytest.mark.parametrize("client", ["memory"], indirect=True)
def test_what_is_for_one_queue_is_refused_for_several(client: ControlPlaneClient) -> None:
    app = Tasks("shop", client=client)
    with pytest.raises(TypeError, match=r"write queues=\['high'\]"):
        app.worker(queues="high")
    with pytest.raises(ValueError, match="prefetch= is for a worker of one queue"):
        app.worker(queues=["a", "b"], prefetch=5)
    with pytest.raises(ValueError, match="min_interval_s= is for a worker of one queue"):
        app.worker(queues=["a", "b"], min_interval_s=1.0)
    with pytest.raises(ValueError, match="no task"):
        app.worker()
