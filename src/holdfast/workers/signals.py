"""SIGTERM and SIGINT end a worker: the first lets its jobs finish, the second does not."""

import asyncio
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGINT)

Stop = Callable[[], object]


class AsyncStopSignals:
    """While the block runs, a signal calls `stop` on the event loop."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._installed: list[signal.Signals] = []

    def __enter__(self) -> Self:
        for number in SIGNALS if threading.current_thread() is threading.main_thread() else ():
            self._loop.add_signal_handler(number, self._stop)
            self._installed.append(number)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number in self._installed:
            self._loop.remove_signal_handler(number)


class StopSignals:
    """While the block runs, a signal calls `stop`; outside the main thread, which alone gets signals, it does nothing."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS if threading.current_thread() is threading.main_thread() else ():
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _handle(self, *_: object) -> None:
        # In a thread: the one that was interrupted may hold the very lock that stopping needs.
        threading.Thread(target=self._stop, name="holdfast-signal", daemon=True).start()
