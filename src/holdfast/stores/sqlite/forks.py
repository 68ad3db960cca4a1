"""Forks: a child closes inherited connections and opens its own, and SQLite is not in use at that moment.

SQLite counts its locks by process and file. A child that left inherited connections open would count the parent's locks as its own, take
none, and lose its commits when the parent, seeing no locks, tidies the log away; a mutex of SQLite's that another thread held at the fork
would never open again in the child.
"""

import os
import threading
import weakref
from typing import Protocol

PAUSE_S = 20.0
"""How long a fork waits for statements under way: somewhat longer than SQLite waits for another program."""


class Forkable(Protocol):
    """A store with connections."""

    @property
    def locks(self) -> tuple[threading.Lock, ...]:
        """Each is held while one of its connections is in use."""
        ...

    def leave_to_parent(self, *, is_idle: bool) -> None:
        """In a child: put away what is the parent's; where it was in use, for good."""
        ...


open_stores: "weakref.WeakSet[Forkable]" = weakref.WeakSet()

opening: threading.Lock = threading.Lock()
"""Held while a connection is opened, or closed for good."""

_paused: list[threading.Lock] = []


def _pause() -> None:
    # In this order: who reads may open a connection for it.
    in_use = (*(lock for store in list(open_stores) for lock in store.locks), opening)
    _paused.extend(lock for lock in in_use if lock.acquire(timeout=PAUSE_S))


def _go_on() -> None:
    while _paused:
        _paused.pop().release()


def _leave_all_to_parent() -> None:
    for store in list(open_stores):
        store.leave_to_parent(is_idle=all(lock in _paused for lock in store.locks))
    _go_on()


os.register_at_fork(before=_pause, after_in_parent=_go_on, after_in_child=_leave_all_to_parent)
