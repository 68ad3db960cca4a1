"""SIGTERM and SIGINT stop a worker: the first lets its jobs finish, the second does not."""

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
        loop = asyncio.get_running_loop()
        # Not by `add_signal_handler`: a handler that the program itself gave the loop could not be put back.
        self._handlers = _Handlers(lambda: loop.call_soon_threadsafe(stop))

    def __enter__(self) -> Self:
        self._handlers.install()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._handlers.restore()


class StopSignals:
    """While the block runs, a signal calls `stop` in a thread: the one that was interrupted may hold the very lock that stopping needs."""

    def __init__(self, stop: Stop) -> None:
        self._handlers = _Handlers(lambda: threading.Thread(target=stop, name="holdfast-signal", daemon=True).start())

    def __enter__(self) -> Self:
        self._handlers.install()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._handlers.restore()


class _Handlers:
    """What signals do meanwhile; outside the main thread, which alone gets signals, it does nothing."""

    def __init__(self, act: Stop) -> None:
        self._act = act
        self._before: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        for number in SIGNALS if threading.current_thread() is threading.main_thread() else ():
            self._before[number] = signal.signal(number, lambda *_: self._act())

    def restore(self) -> None:
        for number, before in self._before.items():
            # None was installed by something else than Python, and cannot be put back.
            signal.signal(number, signal.SIG_DFL if before is None else before)
