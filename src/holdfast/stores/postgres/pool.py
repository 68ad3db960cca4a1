"""Sessions that all threads and tasks of a process share.

An idle session belongs to no one, to no event loop either, so a loop that ends leaves nothing behind. New ones are made in
threads of their own: a caller waits for the first that comes, and may be cancelled or interrupted meanwhile.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from weakref import WeakSet

from holdfast.errors import Closed
from holdfast.stores.postgres.sessions import Session


class NoSession(Exception):  # noqa: N818 - what became of a try; callers never see it
    """None became free, or was made, in time."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"no connection in {timeout_s:.3g} s")


class Pool:
    """At most so many sessions, each lent to one caller at a time.

    Sessions, and threads that make them, are counted while they are referenced: what an interrupt made its caller forget is collected, and
    counts no more.
    """

    def __init__(self, make: Callable[[], Session], most: int) -> None:
        self._make = make
        self._most = most
        # Guards all below. Reentrant, because the garbage collector may end a task that has a session in a thread that holds it.
        self._lock = threading.RLock()
        self._idle: list[Session] = []
        self._line: deque[Future[Session]] = deque()
        self._makers: WeakSet[threading.Thread] = WeakSet()
        self._sessions: WeakSet[Session] = WeakSet()
        self._generation = 0
        self._is_closed = False

    def take(self, timeout_s: float) -> Session:
        """A session, for a thread; raises `NoSession`, `Closed`, or why none could be made."""
        session, place = self._find()
        if session is not None:
            return session
        try:
            return place.result(timeout_s)
        except BaseException as error:
            self._leave(place)
            if isinstance(error, TimeoutError):
                raise NoSession(timeout_s) from None
            raise

    async def take_async(self, timeout_s: float) -> Session:
        """A session, for a task."""
        session, place = self._find()
        if session is not None:
            return session
        waiting = asyncio.wrap_future(place)
        try:
            # Not wait_for, which loses cancellations before 3.12.
            await asyncio.wait([waiting], timeout=timeout_s)
            if waiting.done():
                return waiting.result()
        except BaseException:
            self._leave(place, waiting)
            raise
        self._leave(place, waiting)
        raise NoSession(timeout_s)

    def give_back(self, session: Session) -> None:
        """Let the next in line have it; it is closed if it is of no use any more."""
        now = time.monotonic()
        with self._lock:
            if session.generation == self._generation and session.is_usable(now) and not self._is_closed:
                session.rest(now)
                self._hand_over(session)
                return
            self._sessions.discard(session)
        session.close()
        self._make_for_line()

    def drain(self) -> None:
        """Close what is idle, and what is in use once it is given back."""
        with self._lock:
            self._generation += 1
            idle, self._idle = self._idle, []
            self._sessions -= set(idle)
        for session in idle:
            session.close()
        self._make_for_line()

    def close(self) -> None:
        """Drain for good: waiters are woken. Never waits for a server."""
        with self._lock:
            self._is_closed = True
            line, self._line = self._line, deque()
        self.drain()
        for place in line:
            if place.set_running_or_notify_cancel():
                place.set_exception(closed())

    def _find(self) -> "tuple[Session | None, Future[Session]]":
        """An idle session, or a place in line."""
        with self._lock:
            if self._is_closed:
                raise closed()
            now = time.monotonic()
            while self._idle:
                session = self._idle.pop()
                if session.is_usable(now):
                    return session, NOWHERE
                self._sessions.discard(session)
                session.close()
            place: Future[Session] = Future()
            self._line.append(place)
        self._make_for_line()
        return None, place

    def _leave(self, place: "Future[Session]", waiting: "asyncio.Future[Session] | None" = None) -> None:
        """Wait no longer; what came all the same goes to the next."""
        if waiting is not None and not waiting.cancel():
            # Looked at, so that asyncio does not complain about what nobody wants to know any more.
            waiting.exception()
        with self._lock:
            if place in self._line:
                self._line.remove(place)
                return
        if place.done() and not place.cancelled() and place.exception() is None:
            self.give_back(place.result())

    def _hand_over(self, session: Session) -> None:
        """Give it to the first in line; the lock is held."""
        place = self._next_in_line()
        if place is None:
            self._idle.append(session)
        else:
            place.set_result(session)

    def _next_in_line(self) -> "Future[Session] | None":
        """Who waited longest; the lock is held."""
        while self._line:
            place = self._line.popleft()
            if place.set_running_or_notify_cancel():
                return place
        return None

    def _make_for_line(self) -> None:
        """Have as many made as wait, while there is room."""
        while (maker := self._next_maker()) is not None:
            # Without the lock: the new thread must run to be started, and the garbage collector may need the lock there.
            maker.start()

    def _next_maker(self) -> threading.Thread | None:
        with self._lock:
            has_room = len(self._makers) + len(self._sessions) < self._most
            if len(self._makers) >= len(self._line) or not has_room or self._is_closed:
                return None
            maker = threading.Thread(target=self._work, args=(self._generation,), name="holdfast-connect", daemon=True)
            self._makers.add(maker)
            return maker

    def _work(self, generation: int) -> None:
        """Make one, in a thread of its own."""
        try:
            session = self._make()
        except Exception as error:  # noqa: BLE001 - whoever waits for it raises it
            with self._lock:
                self._makers.discard(threading.current_thread())
                place = self._next_in_line()
                if place is not None:
                    place.set_exception(error)
            self._make_for_line()
            return
        session.generation = generation
        with self._lock:
            self._makers.discard(threading.current_thread())
            self._sessions.add(session)
        self.give_back(session)


NOWHERE: "Future[Session]" = Future()
"""The place of who need not wait."""


def closed() -> Closed:
    """What a caller hears after the end."""
    return Closed("The store was closed; open it again.")
