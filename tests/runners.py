"""Starts work beside a test: as tasks for tests that are tasks, as threads for their generated twins."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

R = TypeVar("R")

PATIENCE_S = 60.0
"""How long what must happen may take."""


class AsyncRunner:
    """Runs tasks, and cancels those that are left over at the end."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, work: Callable[..., Coroutine[Any, Any, R]], *args: object) -> "AsyncStarted[R]":
        task = asyncio.create_task(work(*args))
        self._tasks.append(task)
        return AsyncStarted(task)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - any condition will do, and none of them rings
            await asyncio.sleep(0)


class AsyncStarted(Generic[R]):
    """Work in a task of its own."""

    def __init__(self, task: asyncio.Task[R]) -> None:
        self._task = task

    async def result(self) -> R:
        return await self._task


class Runner:
    """Runs threads; a test must let each of them end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing is left over: the threads are daemons."""

    def start(self, work: Callable[..., R], *args: object) -> "Started[R]":
        return Started(work, args)

    def until(self, condition: Callable[[], bool]) -> None:
        pause, deadline = threading.Event(), time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"it did not happen within {PATIENCE_S} seconds")
            pause.wait(0.001)


class Started(Generic[R]):
    """Work in a thread of its own."""

    def __init__(self, work: Callable[..., R], args: tuple[object, ...]) -> None:
        self._outcome: list[R | BaseException] = []

        def run() -> None:
            try:
                self._outcome.append(work(*args))
            except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
                self._outcome.append(error)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def result(self) -> R:
        self._thread.join(PATIENCE_S)
        if not self._outcome:
            raise TimeoutError(f"it did not end within {PATIENCE_S} seconds")
        outcome = self._outcome[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def waiting_on(store: Any, topic: str) -> int:
    """How many wait on the topic, whichever face of the store it is."""
    count: int = getattr(store, "store", store).waiters.waiting(topic)
    return count


class AsyncGate:
    """Lets tasks wait for each other."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def wait(self) -> None:
        await asyncio.wait_for(self._event.wait(), 60)

    def open(self) -> None:
        self._event.set()


class Gate:
    """Lets threads wait for each other."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wait(self) -> None:
        if not self._event.wait(60):
            raise TimeoutError

    def open(self) -> None:
        self._event.set()
