"""Closes one handle: its own waits end, other waits on the same store continue."""

from typing import TypeVar

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import Closed
from holdfast.stores import AsyncStore, Guarantees
from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")


class AsyncClosable:
    """A store as one handle uses it: after `end`, which any thread may call, every wait of the handle raises `Closed` at once.

    Commands still pass: closing the handle closes nothing for other users.
    """

    def __init__(self, store: AsyncStore, problem: str) -> None:
        self.is_ended = False
        self.url: str = store.url
        self.limits: Limits = store.limits
        self._store = store
        self._problem = problem
        # Each change to it is one step of the interpreter.
        self._waiting: set[Mark] = set()

    @property
    def waiters(self) -> Waiters:
        return self._store.waiters

    @property
    def guarantees(self) -> Guarantees:
        return self._store.guarantees

    async def execute(self, command: Command[R]) -> R:
        return await self._store.execute(command)

    def mark(self, topic: str) -> Mark:
        return self._store.mark(topic)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        self._waiting.add(mark)
        try:
            # After it was added: whoever ends the handle from now on nudges it.
            self.check()
            await self._store.wait(mark, timeout_s, due_in_s, poll_s)
        finally:
            self._waiting.discard(mark)
        self.check()

    def wall_offset_us(self) -> int:
        return self._store.wall_offset_us()

    async def aclose(self) -> None:
        """End the handle; the store stays open."""
        self.end()

    def check(self) -> None:
        """Raise `Closed` if the handle was ended."""
        if self.is_ended:
            raise Closed(self._problem)

    def end(self) -> None:
        """Let every wait raise `Closed`."""
        self.is_ended = True
        for mark in list(self._waiting):
            mark.nudge()
