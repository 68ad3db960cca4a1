"""Workers of one queue that wait: each put lets one of them ask."""

from typing import Any

import pytest

from holdfast._async.flows.working.shift import AsyncShift
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Claim, Together
from holdfast.commands.topics import queue_topic
from holdfast.workers.running.places import OnlyPlace
from tests.runners import AsyncRunner, waiting_on
from tests.workers.detours import Detour

pytestmark = pytest.mark.anyio

WORKERS = 8
PUTS = 3


class AsyncWaiting:
    """Workers that wait for jobs, and how often they ask for some."""

    def __init__(self, client: ControlPlaneClient) -> None:
        self.asked = self.done = 0
        self._store: Any = client.async_store
        self.workers = [AsyncWorker(self._handle, "jobs", client=client, schedules=False) for _ in range(WORKERS)]

    async def _handle(self, value: int) -> None:
        self.done += 1

    async def _counted(self, command: Any) -> Any:
        parts = command.commands if isinstance(command, Together) else [command]
        self.asked += sum(isinstance(part, Claim) for part in parts)
        return await self._store.execute(command)

    def begin(self, runner: AsyncRunner) -> None:
        for worker in self.workers:
            shift: AsyncShift = worker._begin(until_empty=False)
            shift._queues[0]._store = Detour(self._store, self._counted)
            runner.start(shift.run)

    def at_rest(self) -> bool:
        return waiting_on(self._store, queue_topic("jobs")) == WORKERS

    def stop(self) -> None:
        for worker in self.workers:
            worker.tell_stop()


async def test_a_put_lets_one_of_many_workers_ask(client: ControlPlaneClient) -> None:
    waiting = AsyncWaiting(client)
    async with AsyncRunner() as runner:
        waiting.begin(runner)
        await runner.until(waiting.at_rest)
        before = waiting.asked
        for number in range(PUTS):
            await waiting.workers[0].put(number)
            await runner.until(lambda: waiting.done == number + 1 and waiting.at_rest())  # noqa: B023 - called before the next number
        waiting.stop()
    # One asks for the job, and asks for another when it is done.
    assert waiting.asked - before < 4 * PUTS


@pytest.mark.parametrize("client", ["memory"], indirect=True)
async def test_control_workers_that_leave_the_line_at_each_turn_wake_all_others(
    client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OnlyPlace, "stand", lambda self, room: self._store.mark(self._topics[bool(room)]))
    waiting = AsyncWaiting(client)
    async with AsyncRunner() as runner:
        waiting.begin(runner)
        await runner.until(waiting.at_rest)
        before = waiting.asked
        await waiting.workers[0].put(1)
        await runner.until(lambda: waiting.asked - before > 2 * WORKERS)
        waiting.stop()
