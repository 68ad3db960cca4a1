"""The caller on whose behalf commands are executed, and their time limit."""

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from holdfast.errors import TookTooLong

C = TypeVar("C")
R = TypeVar("R")


class Request:
    """One caller's commands, one after the other; a server makes one for each HTTP request."""

    __slots__ = ("_end", "is_given_up", "most_s", "whose")

    def __init__(self, whose: str = "", most_s: float | None = None) -> None:
        self.whose: str = whose
        """Who asks: stores divide their time among these."""
        self.most_s: float | None = most_s
        self.is_given_up: bool = False
        """Whether the caller no longer waits for the answer."""
        self._end: float | None = None

    def begin(self) -> None:
        """Count the time of the next command from now on."""
        self._end = None if self.most_s is None else time.monotonic() + self.most_s

    def is_over(self) -> bool:
        """Whether the command is to end now."""
        return self.is_given_up or (self._end is not None and time.monotonic() > self._end)

    def check(self) -> None:
        """Raise `TookTooLong` if the command is to end now; the caller rolls back what it wrote."""
        if self.is_over():
            raise took_too_long(self.most_s)


NOBODY = Request()
"""What has no caller to speak of, and no limit."""

current: ContextVar[Request] = ContextVar("holdfast_request", default=NOBODY)
"""The request of this task, or of what this thread executes at the moment."""


def execute_in_time(request: Request, execute: Callable[[C], R], command: C) -> R:
    """Execute one command of the request in this thread; whatever ends it when its time is over is `TookTooLong`."""
    request.begin()
    before = current.set(request)
    try:
        request.check()
        return execute(command)
    except Exception as error:
        if request.is_over() and not isinstance(error, TookTooLong):
            raise took_too_long(request.most_s) from error
        raise
    finally:
        current.reset(before)


def took_too_long(most_s: float | None) -> TookTooLong:
    """What the caller of a command that was ended is told."""
    limit = "" if most_s is None else f" of {most_s:g} s"
    return TookTooLong(f"the command took longer than its limit{limit} and was ended; nothing was written: request less at once")
