"""What signals did before a worker ran they do again after it."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Worker
from holdfast.aio import Worker as AsyncWorker
from tests.runners import AsyncRunner


@pytest.fixture
def client() -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient("memory://") as made:
        yield made


@pytest.fixture
def told() -> Iterator[list[int]]:
    """Signals that reached the program's own handler."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


def test_the_handler_of_a_program_is_put_back(client: ControlPlaneClient, told: list[int]) -> None:
    seen: list[Any] = []

    def handle(value: Any) -> None:
        seen.append(signal.getsignal(signal.SIGTERM))

    worker = Worker(handle, "jobs", client=client)
    own = signal.getsignal(signal.SIGTERM)
    worker.put(1)
    worker.run(until_empty=True)
    os.kill(os.getpid(), signal.SIGTERM)
    assert (seen != [own], told) == (True, [signal.SIGTERM])


def test_the_handler_of_an_event_loop_is_put_back(client: ControlPlaneClient) -> None:
    async def main() -> None:
        heard = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, heard.set)
        await AsyncWorker(handle, "jobs", client=client).run(until_empty=True)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(heard.wait(), 60)
        loop.remove_signal_handler(signal.SIGTERM)

    async def handle(value: Any) -> None:
        raise AssertionError("not reached")

    asyncio.run(main())


def test_a_signal_stops_a_worker_on_an_event_loop(client: ControlPlaneClient, told: list[int]) -> None:
    async def handle(value: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        async with AsyncRunner() as runner:
            await runner.until(lambda: worker.health.state == "stopping")

    worker: AsyncWorker[Any, Any, Any] = AsyncWorker(handle, "jobs", client=client)

    async def main() -> None:
        await worker.put_many([1, 2])
        await asyncio.wait_for(worker.run(), 60)

    asyncio.run(main())
    assert (worker.health.done, told) == (1, [])


def test_outside_the_main_thread_signals_are_left_alone(client: ControlPlaneClient, told: list[int]) -> None:
    seen: list[Any] = []

    def handle(value: Any) -> None:
        seen.append(signal.getsignal(signal.SIGTERM))

    worker = Worker(handle, "jobs", client=client)
    worker.put(1)
    thread = threading.Thread(target=worker.run, kwargs={"until_empty": True})
    thread.start()
    thread.join(60)
    assert seen == [signal.getsignal(signal.SIGTERM)]
