# Generated from src/holdfast/_async/flows/working/opening.py by tools/unasync.py; do not edit.
"""Waits for a store that is unreachable when a worker starts; permanent errors, such as a wrong password, are raised at once."""

import logging
from collections.abc import Callable

from holdfast._sync.flows.working.queue_shift import AWAY
from holdfast._sync.flows.working.shift import Shift
from holdfast.errors import StoreUnavailable
from holdfast.workers.handlers.outcomes import shown
from holdfast.workers.registry import WorkerHealth
from holdfast.workers.running.background import Pause

_log = logging.getLogger("holdfast.worker")


class Opening:
    """Tries to begin a shift until its store can be opened, or until it is told to stop, from any thread."""

    def __init__(self, name: str, begin: Callable[[], Shift]) -> None:
        self._name = name
        self._begin = begin
        self._pause = Pause()
        self._shift: Shift | None = None
        self._is_stopped = False
        self._tries = 0
        self._error: str | None = None

    def stop(self) -> None:
        """Try no more."""
        self._is_stopped = True
        self._pause.end()

    def try_once(self) -> None:
        """Open the store if it can be reached."""
        try:
            self._shift = self._begin()
        except StoreUnavailable as error:
            self._tries += 1
            self._error = shown(error)
            if self._tries == 1:
                _log.warning("worker %s cannot reach its store, and continues once it can: %s", self._name, error)

    def wait(self) -> Shift | None:
        """The shift, as soon as it can begin; None if it was told to stop before."""
        while not self._is_stopped:
            if self._shift is not None:
                return self._shift
            if self._pause.sleep(AWAY.delay_s(self._tries)):
                self.try_once()
        return None

    @property
    def health(self) -> WorkerHealth:
        """How it is at this moment."""
        return WorkerHealth("away", 0, 0, 0, 0, self._error)
