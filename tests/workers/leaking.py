"""Functions that leak memory: a module of their own, since children import it."""

import os
import time

from holdfast.workers.execution.lifetime import resident_mb

KEPT: list[bytes] = []


def where(value: int) -> int:
    return os.getpid()


def leak(mb: int) -> tuple[int, float]:
    """Keep so many MiB for ever, and say how many the process has."""
    KEPT.append(b"x" * (mb * 1024 * 1024))
    return os.getpid(), resident_mb(os.getpid())


def leak_slowly(mb: int) -> tuple[int, float]:
    """The same with some work."""
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass
    return leak(mb)
