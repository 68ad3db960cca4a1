"""Ctrl-C that takes effect at the end of a block."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Raise KeyboardInterrupt behind the block if Ctrl-C came inside it, where foreign code would make another error of it.

    Only in the main thread.
    """
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
