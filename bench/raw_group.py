"""The floor of shared commits: one writer thread runs the bare statements of all callers who wait, and commits once for them."""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable

from bench.raw_sqlite import PUT, row

Parameters = tuple[object, ...]


class RawGroup:
    """The writer thread; each piece of work is some rows to put and whom to tell after the commit."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self._inbox: queue.SimpleQueue[tuple[list[Parameters], Callable[[], object]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def put(self) -> None:
        """Put a message and wait until it is committed, in a thread."""
        bell = threading.Lock()
        bell.acquire()
        self._inbox.put(([row()], bell.release))
        bell.acquire()

    def submit(self, rows: list[Parameters], tell: Callable[[], object]) -> None:
        self._inbox.put((rows, tell))

    def close(self) -> None:
        self._inbox.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._inbox.get()) is not None:
            works = [first]
            while not self._inbox.empty() and (more := self._inbox.get()) is not None:
                works.append(more)
            self._sql.execute("begin immediate")
            for rows, _ in works:
                for parameters in rows:
                    self._sql.execute(PUT, parameters)
            self._sql.execute("commit")
            for _, tell in works:
                tell()


class RawTaskGroup:
    """The tasks of one event loop: what they ask while a batch is away goes with the next."""

    def __init__(self, group: RawGroup) -> None:
        self._group = group
        self._loop = asyncio.get_running_loop()
        self._rows: list[Parameters] = []
        self._futures: list[asyncio.Future[None]] = []
        self._is_away = False

    async def put(self) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._rows.append(row())
        self._futures.append(future)
        if not self._is_away:
            self._is_away = True
            self._loop.call_soon(self._dispatch)
        await future

    def _dispatch(self) -> None:
        self._is_away = bool(self._rows)
        if self._rows:
            futures = self._futures
            self._group.submit(self._rows, lambda: self._loop.call_soon_threadsafe(self._deliver, futures))
            self._rows, self._futures = [], []

    def _deliver(self, futures: list[asyncio.Future[None]]) -> None:
        for future in futures:
            future.set_result(None)
        # By the next turn of the loop those who were answered have asked again.
        self._loop.call_soon(self._dispatch)
