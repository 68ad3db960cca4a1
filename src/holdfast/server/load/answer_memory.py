"""Counts the bytes of responses in memory until they are sent; further requests wait or are refused."""

import asyncio
from collections import OrderedDict, deque
from typing import Final

from holdfast.stores.http.problems import WireError

MIB: Final = 2**20
MOST_BYTES: Final = 128 * MIB
MOST_BYTES_EACH: Final = 32 * MIB
"""In all, and of each caller."""

WAIT_S: Final = 10.0
"""How long a request waits for room: less than its client waits for an answer."""

RETRY: Final = ((b"retry-after", b"1"), (b"connection", b"close"))


class Memory:
    """Of one server; used on one event loop."""

    def __init__(self, most: int = MOST_BYTES, most_each: int = MOST_BYTES_EACH) -> None:
        self._most = most
        self._most_each = min(most, most_each)
        self._total = 0
        self._held: dict[str, int] = {}
        # Who waits, by caller: the first of each is next, and no caller stands in the way of another.
        self._waiting: OrderedDict[str, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @property
    def total(self) -> int:
        """How many bytes are held at this moment."""
        return self._total

    def take(self, whose: str, size: int) -> bool:
        """Hold so many bytes more if there is room now; whether there was."""
        if whose in self._waiting or not self._has_room(whose, size):
            return False
        self.hold(whose, size)
        return True

    async def wait(self, whose: str, size: int) -> None:
        """Hold so many bytes more as soon as there is room, or refuse after a while."""
        if self.take(whose, size):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._waiting.setdefault(whose, deque())
        line.append((size, turn))
        try:
            async with asyncio.timeout(WAIT_S):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.hold(whose, -size)  # Its turn came in the very moment in which it was given up.
            turn.cancel()
            self._admit()
            if isinstance(error, TimeoutError):
                raise self._refusal(whose, size) from None
            raise

    def hold(self, whose: str, size: int) -> None:
        """Count so many bytes more, or fewer."""
        self._total += size
        if held := self._held.get(whose, 0) + size:
            self._held[whose] = held
        else:
            self._held.pop(whose, None)
        if size < 0 and self._waiting:
            self._admit()

    def _has_room(self, whose: str, size: int) -> bool:
        held = self._held.get(whose, 0)
        return (not held or held + size <= self._most_each) and (not self._total or self._total + size <= self._most)

    def _admit(self) -> None:
        """Give those who wait their turns, one caller after the other, as far as there is room."""
        for whose in list(self._waiting):
            line = self._waiting[whose]
            while line and (line[0][1].done() or self._has_room(whose, line[0][0])):
                size, turn = line.popleft()
                if not turn.done():
                    self.hold(whose, size)
                    turn.set_result(None)
            if not line:
                del self._waiting[whose]
            else:
                self._waiting.move_to_end(whose)

    def _refusal(self, whose: str, size: int) -> WireError:
        held = self._held.get(whose, 0)
        is_own = held and held + size > self._most_each
        most, status = (self._most_each, 429) if is_own else (self._most, 503)
        whose_answers = "your answers" if is_own else "answers"
        detail = f"{whose_answers} already take {most // MIB:,} MiB here: read them, or request less at a time"
        return WireError("too_many_requests", status, detail, RETRY)


class Share:
    """What the answer to one request takes."""

    def __init__(self, memory: Memory, whose: str) -> None:
        self._memory = memory
        self._whose = whose
        self._held = 0

    @property
    def held(self) -> int:
        """How many bytes it takes at this moment."""
        return self._held

    def take(self, size: int) -> bool:
        """Hold more if there is room now; whether there was."""
        if not self._memory.take(self._whose, size):
            return False
        self._held += size
        return True

    async def wait_for(self, size: int) -> None:
        """Hold more as soon as there is room."""
        await self._memory.wait(self._whose, size)
        self._held += size

    def keep(self, size: int) -> None:
        """Hold so many bytes from now on."""
        if size != self._held:
            self._memory.hold(self._whose, size - self._held)
            self._held = size

    def leave(self) -> None:
        """Hold nothing any more. Idempotent."""
        self.keep(0)
