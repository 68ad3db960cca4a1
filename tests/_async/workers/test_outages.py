"""A worker whose store goes away goes on by itself when it is back, and has lost nothing."""

import math
from typing import Any

import pytest

from holdfast import JobContext, StoreError, StoreUnavailable
from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.telemetry.meters import OUTAGES
from tests.meters import counted
from tests.runners import AsyncGate, AsyncRunner
from tests.workers.detours import Detour

pytestmark = pytest.mark.anyio


async def test_a_worker_goes_on_by_itself_when_its_store_is_back(client: ControlPlaneClient) -> None:
    gate = AsyncGate()

    async def handle(value: int) -> None:
        if value:
            gate.open()

    worker = AsyncWorker(handle, "jobs", client=client)
    store = client.async_store
    execute = store.execute
    is_away = False

    async def away(command: Any) -> Any:
        if is_away:
            raise StoreUnavailable("gone for a walk")
        return await execute(command)

    shift, before = worker._begin(), counted(OUTAGES)
    shift._queues[0]._store = shift._registration._store = Detour(store, away)
    async with AsyncRunner() as runner:
        running = runner.start(shift.run)
        is_away = True
        await worker.put(0)
        await runner.until(lambda: worker.health.state == "away")
        assert "gone for a walk" in (worker.health.error or "")
        is_away = False
        await worker.put(1)
        await gate.wait()
        await runner.until(lambda: worker.health.state == "working")
        assert (worker.health.outages, counted(OUTAGES)) == (1, before + 1)
        worker.tell_stop()
        await running.result()
    assert worker.health.done == 2


async def test_a_report_is_written_when_the_store_is_back(client: ControlPlaneClient) -> None:
    began, gates = AsyncGate(), [AsyncGate(), AsyncGate()]

    async def handle(value: int, job: JobContext) -> None:
        began.open()
        await gates[0].wait()
        job.report({"part": 1})
        await gates[1].wait()

    worker = AsyncWorker(handle, "jobs", client=client)
    job = await worker.put(1)
    execute = client.async_store.execute
    is_away = False

    async def away(command: Any) -> Any:
        if is_away:
            raise StoreUnavailable("gone for a walk")
        return await execute(command)

    shift = worker._begin()
    shift._queues[0]._store = shift._registration._store = Detour(client.async_store, away)
    async with AsyncRunner() as runner:
        running = runner.start(shift.run)
        await began.wait()
        is_away = True
        gates[0].open()
        await runner.until(lambda: worker.health.state == "away")
        is_away = False
        async for event in AsyncDict[Any]("jobs-progress", client=client).watch(timeout_s=60.0):
            assert event.data["value"] == {"part": 1}
            break
        assert await job.progress() == {"part": 1}
        gates[1].open()
        worker.tell_stop()
        await running.result()
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


async def test_a_store_that_is_away_at_the_start_is_waited_for(
    client: ControlPlaneClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handle(value: int) -> None:
        assert value == 1

    await AsyncWorker(handle, "jobs", client=client).put(1)
    worker = AsyncWorker(handle, "jobs", client=away_at_first(client, 2, monkeypatch))
    await worker.run(until_empty=True)
    assert worker.health.done == 1
    assert caplog.text.count("cannot reach its store, and continues once it can: not up yet") == 1


async def test_a_worker_that_waits_for_its_store_can_be_stopped(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def handle(value: int) -> None:
        raise AssertionError("not reached")

    worker = AsyncWorker(handle, "jobs", client=away_at_first(client, math.inf, monkeypatch))
    await worker.start()
    assert (worker.health.state, worker.health.error) == ("away", "StoreUnavailable: not up yet")
    with pytest.raises(RuntimeError, match="is already running"):
        await worker.run()
    await worker.stop()
    assert worker.health.state == "stopped"


async def test_what_no_waiting_mends_is_raised_at_once(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def handle(value: int) -> None:
        raise AssertionError("not reached")

    def refuse() -> None:
        raise StoreError("wrong password")

    worker = AsyncWorker(handle, "jobs", client=client)
    monkeypatch.setattr(client, "check_renewal", refuse)
    with pytest.raises(StoreError, match="wrong password"):
        await worker.start()
    assert worker.health.state == "stopped"
