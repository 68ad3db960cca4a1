"""Flows: each job after those before it, what follows once, and failures as they were ordered."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Job, JobFailed, Tasks
from holdfast._sync.handles.flow import Flow
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.workers.flows.nodes import refuse_cycles
from tests.stores_by_name import factory_of
from tests.workers.durable import Bench
from tests.workers.mortal_store import Fate, MortalStore

EMPTY: dict[str, Any] = {"steps": [], "signals": []}


class Log:
    """The jobs that ran, in order, and those that fail."""

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.failing: set[int] = set()


def tasks_of(client: ControlPlaneClient, log: Log, attempts: int = 1) -> Tasks:
    app = Tasks("flows", client=client, max_attempts=3)

    @app.task(name="add", max_attempts=attempts)
    def add(number: int, left: int = 0, right: int = 0) -> int:
        log.ran.append(number)
        if number in log.failing:
            raise ValueError(f"number {number} fails")
        return number + left + right

    return app


@pytest.fixture
def bench() -> Iterator[Bench]:
    clock = FakeClock()
    bench = Bench(MemoryStore(clock=clock), clock)
    yield bench
    bench.client.close()


def diamond(app: Tasks, on_failure: Any) -> Job[dict[str, Any]]:
    add = app.find("add")
    flow = app.flow("diamond", on_failure=on_failure)
    first, second = flow.add(add.args(1)), flow.add(add.args(2), name="second")
    flow.add(add.args(3, first, second), name="third")
    flow.add(add.args(4), after=[first], name="fourth")
    return flow.put()


def test_results_are_arguments_of_what_follows(bench: Bench) -> None:
    log = Log()
    app = tasks_of(bench.client, log)
    job = diamond(app, "stop")
    bench.drain(app)
    assert job.result(timeout_s=0) == {"add": 1, "second": 2, "third": 6, "fourth": 4}
    assert sorted(log.ran) == [1, 2, 3, 4]
    assert bench.left() == EMPTY


@pytest.mark.parametrize("on_failure", ["stop", "run_all"])
def test_a_failure_ends_the_flow_and_a_retry_goes_on(bench: Bench, on_failure: str) -> None:
    log = Log()
    app = tasks_of(bench.client, log)
    log.failing = {2}
    job = diamond(app, on_failure)
    bench.drain(app)
    with pytest.raises(JobFailed, match="nodes failed"):
        job.result(timeout_s=0)
    assert 3 not in log.ran
    assert (4 in log.ran) or on_failure == "stop"
    log.failing = set()
    assert job.retry()
    bench.drain(app)
    assert job.result(timeout_s=0)["third"] == 6
    assert log.ran.count(3) == 1


def test_a_flow_that_holds_waits_for_a_redrive(bench: Bench) -> None:
    log = Log()
    app = tasks_of(bench.client, log)
    log.failing = {2}
    job = diamond(app, "hold")
    bench.drain(app, delayed=True)
    status = job.status()
    assert (status.state, status.progress) == ("sleeping", {"done": 2, "total": 4})
    assert (status.waiting_for or "").startswith("1 of 4: second")
    log.failing = set()
    failed = next(step.child for step in job.steps() if step.state == "called")
    assert Job("default", str(failed), client=bench.client).retry()
    bench.drain(app)
    assert job.result(timeout_s=0)["third"] == 6


def test_what_follows_a_batch_runs_once(bench: Bench) -> None:
    log = Log()
    app = tasks_of(bench.client, log)
    add = app.find("add")
    job = app.flow.batch(add.args(number) for number in range(50)).then(add.args(100)).put()
    bench.drain(app)
    assert len(job.result(timeout_s=0)) == 51
    assert (log.ran[-1], log.ran.count(100)) == (100, 1)


def test_a_list_of_nodes_stands_for_the_list_of_their_results(bench: Bench) -> None:
    app = tasks_of(bench.client, Log())

    @app.task(name="total")
    def total(numbers: list[int], extra: int = 0) -> int:
        return sum(numbers) + extra

    add, flow = app.find("add"), app.flow("list")
    nodes = [flow.add(add.args(number)) for number in range(4)]
    flow.add(total.args([*nodes, nodes[3]], nodes[1]), name="all")
    job = flow.put()
    bench.drain(app)
    assert job.result(timeout_s=0)["all"] == 10
    with pytest.raises(TypeError, match="a list of nodes and of 5"):
        flow.add(total.args([nodes[0], 5]))
    with pytest.raises(ValueError, match="node of another flow"):
        app.flow("other").add(total.args(nodes))


def test_a_flow_is_put_once_under_an_id(bench: Bench) -> None:
    log = Log()
    app = tasks_of(bench.client, log)
    for _ in range(2):
        flow = app.flow("once")
        flow.add(app.find("add").args(1))
        assert flow.put(id="mine").id == "mine"
    bench.drain(app)
    assert log.ran == [1]


def test_a_flow_waits_in_a_queue_that_workers_of_its_tasks_serve(bench: Bench) -> None:
    app = Tasks("flows", client=bench.client)

    @app.task(name="double", queue="media")
    def double(number: int) -> int:
        return number * 2

    flow = app.flow()
    flow.add(double.args(flow.add(double.args(1), name="first")))
    job = flow.put()
    bench.drain(app)
    assert (job.queue, job.result(timeout_s=0)) == ("media", {"first": 2, "double": 4})


def test_nodes_that_wait_for_each_other_are_refused(bench: Bench) -> None:
    app = tasks_of(bench.client, Log())
    add = app.find("add")
    flow, other = app.flow("a"), app.flow("b")
    node = flow.add(add.args(1))
    with pytest.raises(ValueError, match="node of another flow"):
        other.add(add.args(2, node))
    with pytest.raises(ValueError, match="1 to 10,000 nodes"):
        other.put()


@pytest.mark.parametrize("after", [[[1], [0]], [[], [2], [1]], [[0]], [[3], [0], [1], [2]]])
def test_a_graph_with_a_cycle_is_refused(after: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="flow 'ring' has nodes that wait for each other"):
        refuse_cycles("ring", after)


def test_control_graphs_without_cycles_are_not_refused() -> None:
    for seed in range(50):
        refuse_cycles("dag", graph(seed, 40))


def test_a_flow_has_at_most_eight_mib_and_a_part_of_it_as_much_as_a_value(bench: Bench) -> None:
    app = tasks_of(bench.client, Log())

    @app.task(name="keep")
    def keep(text: str) -> None: ...

    def flow_of(sizes: list[int]) -> Flow:
        flow = app.flow("large")
        for size in sizes:
            flow.add(keep.args("x" * size))
        return flow

    most = bench.client.store.limits.value_bytes
    flow_of([most // 2] + [1] * 24 + [most // 2]).put()
    with pytest.raises(ValueError, match=r"flow 'large': a part of it is .* more than the limit"):
        flow_of([most // 2, most // 2]).put()
    with pytest.raises(ValueError, match=rf"a flow is .* bytes encoded, more than the limit of {8 * 2**20:,}"):
        flow_of([most // 2] * 17).put()


def graph(seed: int, size: int) -> list[list[int]]:
    """For each node those before it."""
    chosen = random.Random(seed)
    return [sorted({chosen.randrange(number) for _ in range(chosen.randint(0, 3))}) if number else [] for number in range(size)]


@pytest.mark.parametrize(("kind", "size", "deaths"), [("memory", 60, 12), ("sqlite", 40, 8), ("redis", 25, 4)])
def test_random_graphs_run_in_order_whatever_dies(kind: str, size: int, deaths: int, tmp_path: Path) -> None:
    for seed in range(2):
        clock, log, before = FakeClock(), Log(), graph(seed, size)
        folder = tmp_path / str(seed)
        folder.mkdir()
        store = factory_of(kind, folder).make(clock)
        client = ControlPlaneClient.on(MortalStore(store, Fate()))
        app = tasks_of(client, log, 50)
        add, flow, nodes = app.find("add"), app.flow("graph"), list[Any]()
        for number, others in enumerate(before):
            nodes.append(flow.add(add.args(number), after=[nodes[other] for other in others], name=str(number)))
        job = flow.put()
        for life in range(deaths + 40):
            fate = Fate(7 + 5 * life, after=bool(life % 2)) if life < deaths else Fate()
            worker = tasks_of(ControlPlaneClient.on(MortalStore(store, fate)), log, 50)
            try:
                worker.run(until_empty=True, signals=False, heartbeat_s=None, schedules=False, concurrency=3, lease_s=60.0)
            except Exception:  # noqa: BLE001 - the process died
                assert fate.is_dead
            if job.status().state == "done":
                break
            clock.advance(310.0)
        assert job.result(timeout_s=0) == {str(number): number for number in range(size)}
        first = {number: log.ran.index(number) for number in range(size)}
        assert all(first[other] < first[number] for number, others in enumerate(before) for other in others)
        store.close()
