"""Hearing from the database that something may have changed: one thread and one connection a process, only once somebody waits.

Whoever waits says so in the table `listeners`, and a command notifies only those topics. The notification is a hint and carries no data. A
pooler in transaction mode lets nothing through; then the callers' slow poll has to do.
"""

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from hashlib import md5
from typing import Any

import psycopg
from psycopg import sql

from holdfast.backoff import Backoff
from holdfast.stores.postgres.statements import in_schema
from holdfast.stores.waiting import EVERYTHING, Waiters

Connection = psycopg.Connection[Any]

logger: logging.Logger = logging.getLogger("holdfast")

KEPT_S = 30.0
"""How long the table remembers a topic."""
REFRESH_S = 10.0
SETTLE_S = 0.05
"""Commands that are on their way while a topic is announced may tell nobody: so long it is tried to let them pass."""

BACKOFF = Backoff(first_s=0.05, most_s=5.0)


def channel_of(schema: str) -> str:
    """The channel on which a schema's hints come, as wake() in functions/shared.sql names it."""
    return f"holdfast_{md5(schema.encode(), usedforsecurity=False).hexdigest()}"


class Listener:
    """Passes on what the database tells to those who wait in this process."""

    def __init__(self, connect: Callable[[], Connection], schema: str, waiters: Waiters) -> None:
        self._connect = connect
        self._waiters = waiters
        self._listen = sql.SQL("listen {}").format(sql.Identifier(channel_of(schema)))
        self._announce = in_schema(
            "insert into {}.listeners (topic, until) select distinct t, clock_timestamp() + make_interval(secs => %s) "
            "from unnest(%s::text[]) as t order by t on conflict (topic) do update set until = excluded.until",
            schema,
        )
        self._settled = in_schema("select {}.is_settled(%s::text[])", schema)
        # Guards the three below.
        self._lock = threading.Lock()
        self._wanted: dict[str, Future[None]] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        # Changed by the thread alone.
        self._announced: set[str] = set()
        self._idle: set[str] = set()

    def want(self, topic: str) -> Future[None] | None:
        """Have hints about the topic; None where they come already, else what is done once they do: until then nobody was told."""
        if topic in self._announced:
            return None
        with self._lock:
            if self._is_closed:
                return None
            future = self._wanted.setdefault(topic, Future())
            if self._thread is None:
                self._bell = os.pipe()
                self._thread = threading.Thread(target=self._run, name="holdfast-listener", daemon=True)
                self._thread.start()
            else:
                os.write(self._bell[1], b"!")
        return future

    def close(self) -> None:
        """End the thread and its connection. Again does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            thread, wanted = self._thread, self._wanted
            if thread is not None:
                os.write(self._bell[1], b"!")
        if thread is not None:
            thread.join()
            for end in self._bell:
                os.close(end)
        for future in wanted.values():
            future.set_result(None)

    def _run(self) -> None:
        failed = 0
        while not self._is_closed:
            try:
                with self._connect() as connection:
                    connection.execute(self._listen)
                    failed = 0
                    self._begin(connection)
                    self._follow(connection)
            except psycopg.Error as error:
                failed += 1
                logger.debug("no wake-ups from PostgreSQL for now, waits poll instead: %s", error)
                select.select([self._bell[0]], [], [], BACKOFF.delay_s(failed))

    def _begin(self, connection: Connection) -> None:
        """Announce again what was announced before; hints may have been lost meanwhile, and nobody knows which."""
        if self._announced:
            self._say(connection, self._announced)
            self._waiters.hint(EVERYTHING)

    def _follow(self, connection: Connection) -> None:
        refresh_at = time.monotonic() + REFRESH_S
        while not self._is_closed:
            self._announce_wanted(connection)
            if time.monotonic() >= refresh_at:
                self._refresh(connection)
                refresh_at = time.monotonic() + REFRESH_S
            ready, _, _ = select.select([connection.fileno(), self._bell[0]], [], [], max(0.0, refresh_at - time.monotonic()))
            if self._bell[0] in ready:
                os.read(self._bell[0], 4096)
            for notice in connection.notifies(timeout=0):
                count, _, topic = notice.payload.partition(":")
                # Whoever may connect may notify: what is no hint of ours is nothing to us.
                if count.isascii() and count.isdecimal():
                    self._waiters.hint(topic, int(count))

    def _announce_wanted(self, connection: Connection) -> None:
        with self._lock:
            wanted = set(self._wanted)
        if not wanted:
            return
        self._say(connection, wanted)
        self._settle(connection, wanted)
        with self._lock:
            self._announced |= wanted
            done = [self._wanted.pop(topic) for topic in wanted]
        for future in done:
            future.set_result(None)

    def _settle(self, connection: Connection, topics: set[str]) -> None:
        """Let commands that looked for listeners before these were announced come to their end, if they are short."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            row = connection.execute(self._settled, (sorted(topics),)).fetchone()
            if row is not None and row[0]:
                return
            time.sleep(SETTLE_S / 10)

    def _refresh(self, connection: Connection) -> None:
        """Announce anew those on which somebody waits, and forget those on which nobody did for a while."""
        idle = self._announced - set(self._waiters.topics())
        forgotten = idle & self._idle
        self._announced -= forgotten
        # Who stood in line since was told that it was announced.
        self._announced |= forgotten.intersection(self._waiters.topics())
        self._idle = idle
        if self._announced:
            self._say(connection, self._announced)

    def _say(self, connection: Connection, topics: set[str]) -> None:
        connection.execute(self._announce, (KEPT_S, sorted(topics)))
