"""Opens a store once for all threads and tasks that first need it at the same time.

Importing this must cost next to nothing, like the client.
"""

import _thread
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import Closed
from holdfast.process.callbacks import call_each_once

if TYPE_CHECKING:
    from holdfast.codec.limits import Limits
    from holdfast.holding.keepalive import Keepalive
    from holdfast.stores import AsyncStore, Renewer, Store

CLOSED = "The client was closed: make a new one."


class Opener:
    """Opens a store at the first use. No lock is held meanwhile, so closing never waits for a server that does not answer."""

    def __init__(self, open_store: "Callable[[], Store]") -> None:
        self.open_store = open_store
        self.store: Store | None = None
        self.is_closed: bool = False
        self.face: AsyncStore | None = None
        self.begin_in_child()

    def begin_in_child(self) -> None:
        """Go on after a fork: who held the lock, or was about to open the store, stayed in the parent."""
        # Guards the fields above. Reentrant, because a signal handler may need the store as well.
        self._lock = threading.RLock()
        self._attempt: Attempt | None = None

    def get(self) -> "Store":
        """The store, for threads: opened by the first of them, for which the others wait."""
        while True:
            attempt, is_ours = self._join()
            if is_ours:
                self._try(attempt)
            store = attempt.result()
            if store is not None:
                return store

    def get_face(self) -> "AsyncStore":
        """The same store, for tasks."""
        store = self.get()
        with self._lock:
            if self.face is None:
                self.face = store.for_tasks()
            return self.face

    def begin(self) -> "Attempt":
        """Have the store opened, in a thread of its own unless another does it already; what tells when it is."""
        attempt, is_ours = self._join()
        if is_ours:
            threading.Thread(target=self._try, args=(attempt,), kwargs={"for_tasks": True}, name="holdfast-open", daemon=True).start()
        return attempt

    def close(self) -> "Store | None":
        """Refuse everyone from now on; returns the store, if it is to be closed."""
        with self._lock:
            store = None if self.is_closed else self.store
            self.is_closed = True
            attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.end(None, Closed(CLOSED))
        return store

    def _join(self) -> "tuple[Attempt, bool]":
        """The attempt under way, or a new one that is the caller's to make."""
        with self._lock:
            if self.is_closed:
                raise Closed(CLOSED)
            attempt = self._attempt
            if self.store is not None:
                attempt = Attempt()
                attempt.end(self.store, None)
                return attempt, False
            if attempt is not None and attempt.thread != threading.get_ident():
                return attempt, False
            self._attempt = Attempt()
            return self._attempt, True

    def _try(self, attempt: "Attempt", *, for_tasks: bool = False) -> None:
        attempt.thread = threading.get_ident()
        try:
            store = self.open_store()
            # Here, because what only tasks need is imported now.
            face = store.for_tasks() if for_tasks else None
        except Exception as error:  # noqa: BLE001 - all who wait for it raise it
            self._end(attempt, error=error)
        except BaseException:
            self._end(attempt)
            raise
        else:
            self._end(attempt, store, face)

    def _end(
        self, attempt: "Attempt", store: "Store | None" = None, face: "AsyncStore | None" = None, error: Exception | None = None
    ) -> None:
        surplus = None
        with self._lock:
            if self._attempt is attempt:
                self._attempt = None
            if store is not None and (self.is_closed or self.store is not None):
                store, surplus = self.store, store
            elif store is not None:
                self.store, self.face = store, face
        if surplus is not None:
            surplus.close()
        attempt.end(store, Closed(CLOSED) if self.is_closed else error)


class Parts:
    """What a client opened, and has to close when it is closed or dropped; it does not refer to the client."""

    def __init__(self, opener: Opener, *, keeps_store: bool) -> None:
        self._opener = opener
        self.keepalive: Keepalive | None = None
        self.keeps_store = keeps_store
        """Whether others may have the store when the client is dropped."""

    def close(self) -> None:
        """End every renewal and every wait."""
        if self.keepalive is not None:
            self.keepalive.close()
        store = self._opener.close()
        if store is not None:
            store.close()

    def close_in_background(self) -> None:
        """Close all, for a client that was dropped. In a thread: the code that dropped it may hold a lock that is needed."""
        if not self._opener.is_closed and (self.keepalive is not None or self._opener.store is not None):
            # Even threading's own lock, so the thread is begun by another one. At the end of the interpreter there are no more threads.
            with suppress(RuntimeError):
                _thread.start_new_thread(self._begin_to_close, ())

    def _begin_to_close(self) -> None:
        threading.Thread(target=self._close_dropped, name="holdfast-close", daemon=True).start()

    def _close_dropped(self) -> None:
        if not self.keeps_store:
            self.close()
        elif self.keepalive is not None:
            self.keepalive.close()


class LateRenewals:
    """What is to be renewed of a store that is not open yet; it is, once something is held."""

    def __init__(self, opener: Opener, limits: "Limits") -> None:
        self._opener = opener
        self.limits = limits

    def for_renewals(self) -> "Renewer":
        return self._opener.get().for_renewals()


class Attempt:
    """One attempt to open a store, that several may wait for."""

    def __init__(self) -> None:
        self.thread = 0
        """Who makes it."""
        self._ended = threading.Event()
        self._store: Store | None = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[], object]] = []

    def result(self) -> "Store | None":
        """Wait for the store; None if the thread that opened it was interrupted: try again."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._store

    def when_ended(self, callback: Callable[[], object]) -> None:
        """Call back when it has ended, from whichever thread; at once if it has."""
        self._callbacks.append(callback)
        if self._ended.is_set():
            self._call_back()

    def end(self, store: "Store | None", error: Exception | None) -> None:
        """Tell everyone; only the first time counts."""
        if not self._ended.is_set():
            self._store, self._error = store, error
            self._ended.set()
            self._call_back()

    def _call_back(self) -> None:
        call_each_once(self._callbacks, lambda: "the opening of a store")
