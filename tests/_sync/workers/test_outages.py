# Generated from tests/_async/workers/test_outages.py by tools/unasync.py; do not edit.
"""A worker whose store goes away goes on by itself when it is back, and has lost nothing."""

from typing import Any

from holdfast import JobContext, StoreUnavailable
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from tests.runners import Gate, Runner
from tests.workers.detours import Detour


def test_a_worker_goes_on_by_itself_when_its_store_is_back(client: ControlPlaneClient) -> None:
    gate = Gate()

    def handle(value: int) -> None:
        if value:
            gate.open()

    worker = Worker(handle, "jobs", client=client)
    store = client.store
    execute = store.execute
    is_away = False

    def away(command: Any) -> Any:
        if is_away:
            raise StoreUnavailable("gone for a walk")
        return execute(command)

    shift = worker._begin()
    shift._store = shift._registration._store = Detour(store, away)
    with Runner() as runner:
        running = runner.start(shift.run)
        is_away = True
        worker.put(0)
        runner.until(lambda: worker.health.state == "away")
        assert "gone for a walk" in (worker.health.error or "")
        is_away = False
        worker.put(1)
        gate.wait()
        runner.until(lambda: worker.health.state == "working")
        assert worker.health.outages == 1
        worker.tell_stop()
        running.result()
    assert worker.health.done == 2


def test_a_report_is_written_when_the_store_is_back(client: ControlPlaneClient) -> None:
    began, gates = Gate(), [Gate(), Gate()]

    def handle(value: int, job: JobContext) -> None:
        began.open()
        gates[0].wait()
        job.report({"part": 1})
        gates[1].wait()

    worker = Worker(handle, "jobs", client=client)
    job = worker.put(1)
    execute = client.store.execute
    is_away = False

    def away(command: Any) -> Any:
        if is_away:
            raise StoreUnavailable("gone for a walk")
        return execute(command)

    shift = worker._begin()
    shift._store = shift._registration._store = Detour(client.store, away)
    with Runner() as runner:
        running = runner.start(shift.run)
        began.wait()
        is_away = True
        gates[0].open()
        runner.until(lambda: worker.health.state == "away")
        is_away = False
        for event in Dict[Any]("jobs-progress", client=client).watch(timeout_s=60.0):
            assert event.data["value"] == {"part": 1}
            break
        assert job.progress() == {"part": 1}
        gates[1].open()
        worker.tell_stop()
        running.result()
    assert worker.health.done == 1
