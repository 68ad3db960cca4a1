"""Doing several things at once, and knowing when the others are asleep."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from holdfast.process.frames import frames_of_threads

R = TypeVar("R")

PATIENCE_S = 60.0
"""How long something may take that ought to happen at once."""


class Doing(Generic[R]):
    """Something another thread does; ask for its result in the end."""

    def __init__(self, act: Callable[[], R]) -> None:
        self._act = act
        self._answers: list[R] = []
        self._error: BaseException | None = None
        self.thread: threading.Thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._answers.append(self._act())
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is asked for
            self._error = error

    @property
    def is_over(self) -> bool:
        return not self.thread.is_alive()

    def result(self, what: str = "what another thread did", nudge: Callable[[], object] | None = None) -> R:
        """What came out of it; `nudge` is called again and again until it is over."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_over and time.monotonic() < deadline:
            self.thread.join(0.005 if nudge else PATIENCE_S)
            if nudge is not None and not self.is_over:
                nudge()
        assert self.is_over, f"{what} did not end within {PATIENCE_S} s"
        if self._error is not None:
            raise self._error
        return self._answers[0]


def all_asleep(*doings: Doing[R]) -> None:
    """Return when every one of them has stopped moving: it waits for something."""
    still = 0
    before: list[object] = []
    deadline = time.monotonic() + PATIENCE_S
    while still < 10 and time.monotonic() < deadline:
        time.sleep(0.002)  # To look, not to make something happen.
        frames = frames_of_threads()
        now: list[object] = [(id(frame := frames.get(doing.thread.ident or 0)), frame and frame.f_lasti) for doing in doings]
        still = still + 1 if now == before and not any(_is_about_to_run(doing.thread) for doing in doings) else 0
        before = now


def _is_about_to_run(thread: threading.Thread) -> bool:
    """Whether it stands still only because the machine is busy, where the system tells."""
    try:
        told = Path(f"/proc/self/task/{thread.native_id}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] in {"R", "D"}


def together(*acts: Callable[[], R]) -> list[R]:
    """Do all of these at once; what they answered, in order."""
    barrier = threading.Barrier(len(acts))

    def begin(act: Callable[[], R]) -> R:
        barrier.wait(PATIENCE_S)
        return act()

    doings = [Doing(lambda act=act: begin(act)) for act in acts]  # type: ignore[misc]
    return [doing.result() for doing in doings]
