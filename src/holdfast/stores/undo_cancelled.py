"""Gives back what a networked store granted to a cancelled or interrupted caller."""

import logging
import threading
import time
import weakref
from collections import deque
from typing import Any, Final

from holdfast.commands import Command
from holdfast.errors import HoldfastError
from holdfast.process.forks import call_in_child
from holdfast.stores import Executor

FINISH_S: Final = 2.0
"""How long a store that is closed lets those that are under way be finished, all together: the server may be silent."""

MOST: Final = 8
"""How many threads give back to one store: hundreds of tasks may be cancelled at once."""

_log = logging.getLogger(__name__)

# Guards _waiting, and that a thread ends only when nothing is left for it. Reentrant, because the garbage collector may end a task here.
_lock = threading.RLock()
_waiting: "weakref.WeakKeyDictionary[Executor, deque[Command[Any]]]" = weakref.WeakKeyDictionary()


def take_back_if_cancelled(store: Executor, error: BaseException, command: Command[Any]) -> None:
    """Give back what a caller got, or will get, if what ended its wait was a cancellation or a Ctrl-C rather than an answer."""
    if not isinstance(error, Exception):
        take_back(store, command)


def take_back(store: Executor, command: Command[Any]) -> None:
    """Give back in another thread what a cancelled caller got, or will get; the command has the id it was sent under."""
    if not command.can_grant():
        return
    with _lock:
        _waiting.setdefault(store, deque()).append(command)
        thread = _TakingBack(store) if len(_threads_of(store)) < MOST else None
    if thread is not None:
        thread.start()


def finish_taking_back(store: Executor) -> None:
    """Let what is being given back be given back, before the store is closed."""
    end = time.monotonic() + FINISH_S
    for thread in _threads_of(store):
        thread.join(max(0.0, end - time.monotonic()))


def _threads_of(store: Executor) -> "list[_TakingBack]":
    return [thread for thread in threading.enumerate() if isinstance(thread, _TakingBack) and thread.store is store and not thread.is_over]


class _TakingBack(threading.Thread):
    def __init__(self, store: Executor) -> None:
        super().__init__(name="holdfast-take-back", daemon=True)
        self.store = store
        self.is_over = False

    def run(self) -> None:
        while (command := self._next()) is not None:
            self._take_back(command)

    def _next(self) -> Command[Any] | None:
        with _lock:
            waiting = _waiting.get(self.store)
            if waiting:
                return waiting.popleft()
            self.is_over = True
            return None

    def _take_back(self, command: Command[Any]) -> None:
        """Ask again: under its id the command tells what it was granted, or is granted it now."""
        try:
            for undo in command.undo(self.store.execute(command)):
                self.store.execute(undo)
        except HoldfastError as error:
            _log.warning("A grant to a cancelled caller could not be given back and stays held until its lease ends: %s", error)


def _begin_in_child() -> None:
    """Start again after a fork: the threads, what they were to give back and who held the lock stayed in the parent."""
    global _lock  # noqa: PLW0603 - as above
    _lock = threading.RLock()
    _waiting.clear()


call_in_child(_begin_in_child)
