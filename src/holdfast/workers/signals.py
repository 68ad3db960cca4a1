"""SIGTERM and SIGINT stop a worker: the first lets its jobs finish, the second does not."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from holdfast.process.forks import call_in_child

SIGNALS = (signal.SIGTERM, signal.SIGINT)

Stop = Callable[[], object]

_handled: list["_Handlers"] = []
"""What is to be put back in a process that is forked meanwhile: its signals are its own."""


def async_stop_signals(stop: Stop) -> AbstractContextManager[None]:
    """While the block runs, a signal calls `stop` on the event loop."""
    loop = asyncio.get_running_loop()
    # Not by `add_signal_handler`: a handler that the program itself gave the loop could not be put back.
    return _handled_by(lambda: loop.call_soon_threadsafe(stop))


def stop_signals(stop: Stop) -> AbstractContextManager[None]:
    """While the block runs, a signal calls `stop` in a thread: the one that was interrupted may hold the very lock that stopping needs."""
    return _handled_by(stop)


class _Handlers:
    """The handlers and the wake-up socket that were set earlier, to be put back."""

    def __init__(self, tells: socket.socket) -> None:
        self._before = {number: signal.signal(number, _do_nothing) for number in SIGNALS}
        self.told_before = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)

    def put_back(self) -> None:
        signal.set_wakeup_fd(self.told_before)
        for number, before in self._before.items():
            # None was installed by something else than Python, and cannot be put back.
            signal.signal(number, signal.SIG_DFL if before is None else before)


def _do_nothing(number: int, frame: object) -> None:
    """Handle a signal: what is to be done for it is done by the thread that hears of it."""


@contextmanager
def _handled_by(act: Stop) -> Iterator[None]:
    """Signals call `act` in a thread meanwhile; outside the main thread, which alone gets signals, nothing changes.

    Not by a handler alone: Python runs it in the main thread, and one that goes to sleep just as the signal comes, or whose signal another
    thread was interrupted by, runs it only when something else wakes it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hears, tells = socket.socketpair()
    tells.setblocking(False)  # noqa: FBT003 - so is it called
    handlers = _Handlers(tells)
    thread = threading.Thread(target=_hear, args=(hears, handlers.told_before, act), name="holdfast-signals", daemon=True)
    _handled.append(handlers)
    thread.start()
    try:
        yield
    finally:
        _handled.remove(handlers)
        handlers.put_back()
        tells.close()
        thread.join()
        hears.close()


def _hear(hears: socket.socket, told_before: int, act: Stop) -> None:
    """Act on each signal, and pass each on to whom Python told before."""
    while numbers := hears.recv(64):
        if told_before >= 0:
            with suppress(OSError):  # It does not read, or has gone.
                os.write(told_before, numbers)
        for number in numbers:
            if number in SIGNALS:
                act()


def _put_back_in_child() -> None:
    while _handled:
        _handled.pop().put_back()


call_in_child(_put_back_in_child)
