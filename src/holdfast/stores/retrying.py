"""Retries after a failed connection, shared by all networked stores.

A store's attempt raises `Lost` for what trying again may fix, and any other error for what it will not. Every try of a command has the
same id, so the store behind the wire applies it once however often it arrives.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from holdfast.backoff import Backoff
from holdfast.commands import Command
from holdfast.commands.command import with_fields
from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.ids import new_id

C = TypeVar("C", bound=Command)  # type: ignore[type-arg]  # of whatever answer: the same one comes back
R = TypeVar("R")


class Lost(Exception):  # noqa: N818 - what became of a try; callers never see it
    """A try failed in a way that another may fix."""

    def __init__(self, message: str, *, maybe_applied: bool) -> None:
        super().__init__(message)
        self.maybe_applied = maybe_applied
        """Whether the command was perhaps sent; False only where it surely was not, or was surely undone."""


class Patience(Struct, frozen=True):
    """How long and how often a command is tried."""

    most_s: float = 60.0
    """Half of what stores remember answers for: a late try must find the answer to an earlier one."""
    backoff: Backoff = Backoff(first_s=0.02, most_s=2.0)


ONCE = Patience(most_s=0.0)
"""For renewals: the keepalive decides when to try again."""


class Tries:
    """The tries of one command so far: says after each that failed how long to pause, or that it is over."""

    def __init__(self, patience: Patience = Patience(), now: Callable[[], float] = time.monotonic) -> None:  # noqa: B008 - frozen
        self._patience = patience
        self._now = now
        self._end = now() + patience.most_s
        self._failed = 0
        self._maybe_applied = False

    def pause_s(self, lost: Lost) -> float:
        """How long to wait before the next try; raises once another would come too late."""
        self._failed += 1
        self._maybe_applied |= lost.maybe_applied
        pause_s = self._patience.backoff.delay_s(self._failed)
        if self._now() + pause_s <= self._end:
            return pause_s
        tried = f"{lost} (tried {self._failed} times in {self._patience.most_s:g} s)" if self._failed > 1 else str(lost)
        if self._maybe_applied:
            raise OutcomeUnknown(f"{tried}; the command may have been applied: check before repeating it") from lost
        raise StoreUnavailable(f"{tried}; nothing was written: try again later") from lost


def retry(attempt: Callable[[], R], tries: Tries, sleep: Callable[[float], object] = time.sleep) -> R:
    """Attempt until it works, fails for good, or takes too long."""
    while True:
        try:
            return attempt()
        except Lost as lost:
            pause_s = tries.pause_s(lost)
        sleep(pause_s)


async def retry_async(attempt: Callable[[], Awaitable[R]], tries: Tries, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> R:
    """Attempt as `retry` does, for tasks."""
    while True:
        try:
            return await attempt()
        except Lost as lost:
            pause_s = tries.pause_s(lost)
        await sleep(pause_s)


def named(command: C) -> C:
    """Give the command an id to be known by when it is tried again; what only reads needs none."""
    if command.id or command.reads_only:
        return command
    with_id: C = with_fields(command, id=new_id())
    return with_id
