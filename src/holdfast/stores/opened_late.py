"""The async side of a store that is not open yet; the first command opens it in a thread."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.process.open_once import Opener
from holdfast.stores import AsyncStore, Executor, Guarantees
from holdfast.stores.driver_connections import async_driver_connection
from holdfast.stores.waiting.waiters import Mark, Waiters

if TYPE_CHECKING:
    from holdfast.stores.caller_transaction import AsyncConnection

R = TypeVar("R")

ASK_S: Final = 1.0
"""How often those who wait ask a store that could not be opened."""


async def opened(opener: Opener) -> AsyncStore:
    """The store, for tasks. Who is cancelled meanwhile leaves the opening to others."""
    while opener.store is None:
        attempt = opener.begin()
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def tell(loop: asyncio.AbstractEventLoop = loop, ended: "asyncio.Future[None]" = ended) -> None:
            with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                loop.call_soon_threadsafe(lambda: None if ended.done() else ended.set_result(None))

        attempt.when_ended(tell)
        await ended
        attempt.result()
    return opener.get_face()


class LateStore:
    """A store for tasks before it is open, and after that the store."""

    def __init__(self, opener: Opener, url: str, limits: Limits) -> None:
        self._opener = opener
        self.url = url
        self.limits = limits
        # Of marks that are taken before the store is open; nobody is ever woken there.
        self._early = Waiters()

    async def execute(self, command: Command[R]) -> R:
        return await (await opened(self._opener)).execute(command)

    def mark(self, topic: str) -> Mark:
        return self._early.mark(topic) if self._opener.store is None else self._opener.get_face().mark(topic)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        if self._opener.store is None:
            # The caller has asked in vain, and asks again.
            await self._early.wait_async(mark, timeout_s, due_in_s, ASK_S if poll_s is None else min(poll_s, ASK_S))
        elif mark.waiters is self._early:
            # What came before told nobody, so the caller asks once more.
            mark.become(self._opener.get_face().mark(mark.topic))
        else:
            await self._opener.get_face().wait(mark, timeout_s, due_in_s, poll_s)

    @property
    def waiters(self) -> Waiters:
        """Those of the store; opening it blocks."""
        return self._opener.get_face().waiters

    @property
    def guarantees(self) -> Guarantees:
        """Those of the store; opening it blocks."""
        return self._opener.get_face().guarantees

    def wall_offset_us(self) -> int:
        return self._opener.get_face().wall_offset_us()

    async def aclose(self) -> None:
        self._opener.close()
        if self._opener.face is not None:
            await self._opener.face.aclose()


class LateTransaction:
    """Executes commands in a transaction of the caller's own, in a store that is not open yet."""

    def __init__(self, opener: Opener, connection: "AsyncConnection", before_opening: "Callable[[Any], Executor | None]") -> None:
        self._opener = opener
        self._connection = connection
        self._before_opening = before_opening

    async def execute(self, command: Command[R]) -> R:
        driver = await async_driver_connection(self._connection)
        may_be_early = self._opener.store is None and not self._opener.is_closed
        early = self._before_opening(driver) if may_be_early else None
        if early is not None:
            return early.execute(command)
        await opened(self._opener)
        return await self._opener.get().within_async(driver).execute(command)
