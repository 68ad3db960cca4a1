"""What a cancelled or interrupted caller was granted, across a wire: nobody heard of it, so it is given back."""

import logging
import threading
import time
from typing import Any, Final

from holdfast.commands import Command
from holdfast.errors import HoldfastError
from holdfast.stores import Executor

FINISH_S: Final = 2.0
"""How long a store that is closed lets those that are under way be finished, all together: the server may be silent."""

_log = logging.getLogger(__name__)


def take_back_if_cancelled(store: Executor, error: BaseException, command: Command[Any]) -> None:
    """Give back what a caller got, or will get, if what ended its wait was a cancellation or a Ctrl-C rather than an answer."""
    if not isinstance(error, Exception):
        take_back(store, command)


def take_back(store: Executor, command: Command[Any]) -> None:
    """Give back in a thread of its own what a cancelled caller got, or will get; the command has the id it was sent under."""
    if type(command).undo is not Command.undo:
        _TakingBack(store, command).start()


def finish_taking_back(store: Executor) -> None:
    """Let what is being given back be given back, before the store is closed."""
    end = time.monotonic() + FINISH_S
    for thread in threading.enumerate():
        if isinstance(thread, _TakingBack) and thread.store is store:
            thread.join(max(0.0, end - time.monotonic()))


class _TakingBack(threading.Thread):
    def __init__(self, store: Executor, command: Command[Any]) -> None:
        super().__init__(name="holdfast-take-back", daemon=True)
        self.store = store
        self._command = command

    def run(self) -> None:
        """Ask again: under its id the command tells what it was granted, or is granted it now."""
        try:
            for undo in self._command.undo(self.store.execute(self._command)):
                self.store.execute(undo)
        except HoldfastError as error:
            _log.warning("What a cancelled caller was granted could not be given back, and stays held until its lease ends: %s", error)
