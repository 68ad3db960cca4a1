"""Stopping by SIGTERM or Ctrl-C."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping() -> Iterator[Event]:
    """What is set by the first signal; a second one interrupts, so that what is held is given back, and a third does what it did before."""
    stop = Event()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def told(number: int, frame: object) -> None:
        del frame
        if stop.is_set():
            restore()
            # As a shell reports a process that a signal ended.
            raise SystemExit(128 + number)
        stop.set()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in SIGNALS:
        signal.signal(number, told)
    try:
        yield stop
    finally:
        restore()
