# Generated from tests/_async/workers/test_outages.py by tools/unasync.py; do not edit.
"""A worker whose store goes away goes on by itself when it is back, and has lost nothing."""

import math
from typing import Any

import pytest

from holdfast import JobContext, StoreError, StoreUnavailable
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.telemetry.meters import OUTAGES
from tests.meters import counted
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

    shift, before = worker._begin(), counted(OUTAGES)
    shift._queues[0]._store = shift._registration._store = Detour(store, away)
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
        assert (worker.health.outages, counted(OUTAGES)) == (1, before + 1)
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
    shift._queues[0]._store = shift._registration._store = Detour(client.store, away)
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


def away_at_first(client: ControlPlaneClient, tries: float, monkeypatch: pytest.MonkeyPatch) -> ControlPlaneClient:
    """The client, whose store cannot be opened so many times from now on."""
    left, opens = [tries], client.check_renewal

    def refuse() -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise StoreUnavailable("not up yet")
        opens()

    monkeypatch.setattr(client, "check_renewal", refuse)
    return client


def test_a_store_that_is_away_at_the_start_is_waited_for(
    client: ControlPlaneClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handle(value: int) -> None:
        assert value == 1

    Worker(handle, "jobs", client=client).put(1)
    worker = Worker(handle, "jobs", client=away_at_first(client, 2, monkeypatch))
    worker.run(until_empty=True)
    assert worker.health.done == 1
    assert caplog.text.count("cannot reach its store, and continues once it can: not up yet") == 1


def test_a_worker_that_waits_for_its_store_can_be_stopped(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(value: int) -> None:
        raise AssertionError("not reached")

    worker = Worker(handle, "jobs", client=away_at_first(client, math.inf, monkeypatch))
    worker.start()
    assert (worker.health.state, worker.health.error) == ("away", "StoreUnavailable: not up yet")
    with pytest.raises(RuntimeError, match="is already running"):
        worker.run()
    worker.stop()
    assert worker.health.state == "stopped"


def test_what_no_waiting_mends_is_raised_at_once(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(value: int) -> None:
        raise AssertionError("not reached")

    def refuse() -> None:
        raise StoreError("wrong password")

    worker = Worker(handle, "jobs", client=client)
    monkeypatch.setattr(client, "check_renewal", refuse)
    with pytest.raises(StoreError, match="wrong password"):
        worker.start()
    assert worker.health.state == "stopped"
