"""SIGTERM and SIGINT stop a worker: the first lets its jobs finish, the second does not."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGINT)

Stop = Callable[[], object]


def async_stop_signals(stop: Stop) -> AbstractContextManager[None]:
    """While the block runs, a signal calls `stop` on the event loop."""
    loop = asyncio.get_running_loop()
    # Not by `add_signal_handler`: a handler that the program itself gave the loop could not be put back.
    return _handled_by(lambda: loop.call_soon_threadsafe(stop))


def stop_signals(stop: Stop) -> AbstractContextManager[None]:
    """While the block runs, a signal calls `stop` in a thread: the one that was interrupted may hold the very lock that stopping needs."""
    return _handled_by(lambda: threading.Thread(target=stop, name="holdfast-signal", daemon=True).start())


@contextmanager
def _handled_by(act: Stop) -> Iterator[None]:
    """Signals call `act` meanwhile; outside the main thread, which alone gets signals, nothing changes."""
    numbers = SIGNALS if threading.current_thread() is threading.main_thread() else ()
    handlers = {number: signal.signal(number, lambda *_: act()) for number in numbers}
    try:
        yield
    finally:
        for number, before in handlers.items():
            # None was installed by something else than Python, and cannot be put back.
            signal.signal(number, signal.SIG_DFL if before is None else before)
