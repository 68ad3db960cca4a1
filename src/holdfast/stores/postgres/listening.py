"""Receives notifications: one thread and one connection per process, started by the first wait.

A waiter is listed in the table `listeners`, and a command notifies only those topics. The notification is a hint and carries no data. A
pooler in transaction mode lets nothing through; then the callers' slow poll has to do.
"""

import logging
import os
import select
import threading
import time
from collections.abc import Collection
from concurrent.futures import Future
from contextlib import closing, suppress
from hashlib import md5
from itertools import islice

from msgspec import json
from psycopg import Notify, sql

from holdfast.backoff import Backoff
from holdfast.stores.postgres.address import Address
from holdfast.stores.postgres.sessions import Session
from holdfast.stores.postgres.statements import in_schema
from holdfast.stores.waiting.hints import count_of
from holdfast.stores.waiting.waiters import EVERYTHING, Waiters

logger: logging.Logger = logging.getLogger("holdfast")

KEPT_S = 30.0
"""How long the table remembers a topic."""
REFRESH_S = 10.0
SETTLE_S = 0.05
"""Commands that are on their way while a topic is announced may notify no one: so long it is tried to let them pass."""

ANNOUNCED_AT_ONCE = 50
"""How many topics are announced in one go: each takes some of the locks that the whole server has a limit of."""

REFRESHED_AT_ONCE = 500
REFRESH_PAUSE_S = 0.02
"""Of many topics so many are announced again in one go, and then others have their turn: hints are heard in between."""

SILENT_S = 5.0
"""How long the server may be silent; it is asked something every `REFRESH_S`, so a silent cut is noticed."""
CLOSE_S = 1.0

BACKOFF = Backoff(first_s=0.05, most_s=5.0)


def channel_of(schema: str) -> str:
    """The channel on which a schema's hints come, as wake() in functions/shared.sql names it."""
    return f"holdfast_{md5(schema.encode(), usedforsecurity=False).hexdigest()}"


class Bell:
    """Wakes a thread that sleeps on the database's connection; ringing never blocks, and once it rings, ringing again changes nothing."""

    def __init__(self) -> None:
        self._ends = os.pipe()
        for end in self._ends:
            os.set_blocking(end, False)
        # Guards the ends: nobody rings what is closed, whose numbers may be another file's by then.
        self._lock = threading.Lock()
        self._is_closed = False
        self._rings = False

    def ring(self) -> None:
        """Wake the thread; from any thread."""
        if self._rings:
            return  # What it is woken for is read only after it was seen to ring.
        with self._lock, suppress(BlockingIOError):  # A full pipe rings already.
            if not self._is_closed:
                self._rings = True
                os.write(self._ends[1], b"!")

    def sleep(self, others: list[int], timeout_s: float) -> list[int]:
        """Sleep until it rings, or one of the others is ready; which of them are."""
        poll = select.poll()  # Where select takes no file whose number is 1,024 or more.
        for each in (self._ends[0], *others):
            poll.register(each, select.POLLIN)
        ready = [each for each, _ in poll.poll(timeout_s * 1_000)]
        self._rings = False
        with suppress(BlockingIOError):
            while self._ends[0] in ready:
                os.read(self._ends[0], 65_536)
        return ready

    def close(self) -> None:
        """Give the ends back; only its thread says so, when it sleeps no more."""
        with self._lock:
            self._is_closed = True
            for end in self._ends:
                os.close(end)


class Listener:
    """Passes on what the database reports to those who wait in this process."""

    def __init__(self, address: Address, waiters: Waiters) -> None:
        schema = address.schema
        self._address = address
        self._waiters = waiters
        self._listen = sql.SQL("listen {}").format(sql.Identifier(channel_of(schema)))
        self._announce = in_schema(
            "insert into {}.listeners (topic, until) select distinct t, clock_timestamp() + make_interval(secs => %s) "
            "from json_array_elements_text(%s::json) as t order by t on conflict (topic) do update set until = excluded.until",
            schema,
        )
        self._settled = in_schema("select {}.is_settled(%s::text[])", schema)
        # Guards the four below.
        self._lock = threading.Lock()
        self._wanted: dict[str, Future[None]] = {}
        self._bell: Bell | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False
        # Changed by the thread alone.
        self._announced: set[str] = set()
        self._idle: set[str] = set()

    def want(self, topic: str) -> Future[None] | None:
        """Have hints about the topic; None where they come already, else what is done once they do: until then there were none."""
        if topic in self._announced:
            return None
        with self._lock:
            if self._is_closed:
                return None
            future = self._wanted.setdefault(topic, Future())
            bell = self._bell
            if bell is None:
                self._bell = Bell()
                self._thread = threading.Thread(target=self._run, args=(self._bell,), name="holdfast-listener", daemon=True)
                self._thread.start()
        if bell is not None:
            bell.ring()
        return future

    def close(self) -> None:
        """End the thread and its session, without waiting long for a silent server. Idempotent."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            bell, thread, wanted, self._wanted = self._bell, self._thread, self._wanted, {}
        if bell is not None and thread is not None:
            bell.ring()
            thread.join(CLOSE_S)
        for future in wanted.values():
            future.set_result(None)

    def _run(self, bell: Bell) -> None:
        failed = 0
        while not self._is_closed:
            try:
                with closing(Session.open(self._address, SILENT_S)) as session:
                    session.add_notify_handler(self._hear)
                    session.execute(self._listen)
                    failed = 0
                    self._begin(session)
                    self._follow(session, bell)
            except Exception as error:  # noqa: BLE001 - whatever it is, a thread that ended would be deaf for ever
                failed += 1
                logger.debug("no wake-ups from PostgreSQL for now, waits poll instead: %s", error)
                bell.sleep([], BACKOFF.delay_s(failed))
        bell.close()

    def _begin(self, session: Session) -> None:
        """Announce again what was announced before; hints may have been lost meanwhile, and it is not known which."""
        if self._announced:
            self._say(session, self._announced)
            self._waiters.hint(EVERYTHING)

    def _follow(self, session: Session, bell: Bell) -> None:
        refresh_at = time.monotonic() + REFRESH_S
        old: list[str] = []
        while not self._is_closed:
            self._announce_wanted(session)
            if not old and time.monotonic() >= refresh_at:
                old = sorted(self._still_wanted(), reverse=True)
                refresh_at = time.monotonic() + REFRESH_S
            if old:
                self._say(session, old[-REFRESHED_AT_ONCE:])
                del old[-REFRESHED_AT_ONCE:]
            nap_s = 0.0 if self._wanted else REFRESH_PAUSE_S if old else max(0.0, refresh_at - time.monotonic())
            if session.fileno() in bell.sleep([session.fileno()], nap_s):
                session.hear()

    def _hear(self, notice: Notify) -> None:
        text, _, topic = notice.payload.partition(":")
        # Whoever may connect may notify: what is no hint of ours is nothing to us.
        if (count := count_of(text.encode("ascii", "replace"))) is not None:
            self._waiters.hint(topic, count)

    def _announce_wanted(self, session: Session) -> None:
        with self._lock:
            wanted = set(islice(self._wanted, ANNOUNCED_AT_ONCE))
        if not wanted:
            return
        self._say(session, wanted)
        self._settle(session, wanted)
        with self._lock:
            self._announced |= wanted
            # Unless it was closed meanwhile, which tells them.
            done = [self._wanted.pop(topic) for topic in wanted if topic in self._wanted]
        for future in done:
            future.set_result(None)

    def _settle(self, session: Session, topics: set[str]) -> None:
        """Let commands that looked for listeners before these were announced come to their end, if they are short."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            row = session.execute(self._settled, (sorted(topics),)).fetchone()
            if row is not None and row[0]:
                return
            time.sleep(SETTLE_S / 10)

    def _still_wanted(self) -> set[str]:
        """What to announce again: all but those without waiters for a while, which are forgotten."""
        idle = self._announced - set(self._waiters.topics())
        forgotten = idle & self._idle
        self._announced -= forgotten
        # Who stood in line since was told that it was announced.
        self._announced |= forgotten.intersection(self._waiters.topics())
        self._idle = idle
        return self._announced

    def _say(self, session: Session, topics: Collection[str]) -> None:
        # As JSON: many texts are quoted in one go, not by Python, for which the event loop would wait.
        session.execute(self._announce, (KEPT_S, json.encode(list(topics)).decode()))
