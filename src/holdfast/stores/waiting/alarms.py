"""Alarms that wake a sleeping thread or task."""

import asyncio
import threading

from holdfast.process.event_loops import running_loop


class ThreadAlarm:
    """Wakes one thread. A ring before the sleep is kept; several are one."""

    __slots__ = ("_ring",)

    def __init__(self) -> None:
        self._ring = threading.Lock()
        self._ring.acquire()

    def sleep(self, nap_s: float) -> None:
        self._ring.acquire(timeout=nap_s)

    def ring(self) -> bool:
        try:
            self._ring.release()
        except RuntimeError:
            return True  # It was rung before.
        return True


class TaskAlarm:
    """Wakes one task of one event loop, from any thread."""

    __slots__ = ("_loop", "_ring")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ring = self._loop.create_future()

    async def sleep(self, nap_s: float) -> None:
        timer = self._loop.call_later(nap_s, self._set)
        try:
            await self._ring
        finally:
            timer.cancel()
        self._ring = self._loop.create_future()

    def ring(self) -> bool:
        """Wake the task, or return False: its loop is closed, and it will never run again."""
        if self._loop is running_loop():
            self._set()
            return True
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            return False
        return True

    def _set(self) -> None:
        if not self._ring.done():
            self._ring.set_result(None)
