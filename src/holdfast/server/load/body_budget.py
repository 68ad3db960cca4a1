"""Limits long bodies: their memory while they arrive, and their decoding time.

A body is decoded in one go, and the event loop stands still meanwhile. So long bodies are decoded one at a time, and a caller who made
others wait rests for many times as long before the next; not where no one else asks.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Final, TypeVar

from holdfast.stores.http.problems import WireError

T = TypeVar("T")

MIB: Final = 2**20
MOST_BYTES: Final = 192 * MIB
MOST_BYTES_EACH: Final = 48 * MIB
"""How much of long bodies is held in memory, in all and of each caller."""

REST: Final = 100
"""So many times as long as a caller's long body kept others waiting, its next is held back."""
MANY: Final = 1_000
"""Who has more parts than this rests for them too, though others go on between the pieces."""
PIECE: Final = 50
PAUSE: Final = 4
"""So many times as long as a piece took, the caller's next is held back while there are others."""
CREDIT_S: Final = 20.0
"""So much of the rest for large commands is free after as long a time without: a slow one now and then costs nothing."""
REST_MOST_S: Final = 60.0
PATIENT_S: Final = 5.0
"""For so long a request waits for its turn; one that would wait longer is told when to come again."""


class Budget:
    """Of one server; used on one event loop."""

    def __init__(
        self,
        has_others: Callable[[], bool],
        most_bytes: int = MOST_BYTES,
        most_bytes_each: int = MOST_BYTES_EACH,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._has_others = has_others
        self._most_bytes = most_bytes
        self._most_bytes_each = most_bytes_each
        self._now = now
        self._bytes: Counter[str] = Counter()
        self._rests_until: dict[str, float] = {}
        self._next_piece_at: dict[str, float] = {}
        self._one_at_a_time = asyncio.Lock()

    @contextmanager
    def room(self, whose: str) -> "Iterator[Room]":
        """Room for one body, which counts until the block ends."""
        room = Room(self._take, whose)
        try:
            yield room
        finally:
            self._bytes[whose] -= room.size_bytes
            if not self._bytes[whose]:
                del self._bytes[whose]

    @asynccontextmanager
    async def turn(self, whose: str, place: Callable[[], AbstractAsyncContextManager[object]] | None = None) -> AsyncIterator[None]:
        """Wait for the caller's turn at what others wait for: one at a time, or where there is a `place`."""
        while True:
            await self.rest(whose)
            async with place() if place else self._one_at_a_time:
                if self._left_s(whose) <= 0:
                    yield
                    return

    async def rest(self, whose: str) -> None:
        """Wait until the caller has rested; refuse the request if that would take long."""
        left_s = self._left_s(whose)
        if left_s > PATIENT_S:
            retry = ((b"retry-after", b"%d" % math.ceil(left_s)), (b"connection", b"close"))
            raise WireError("too_many_requests", 429, "your requests delayed other callers: request less at once, or wait", retry)
        if left_s > 0:
            await asyncio.sleep(left_s)

    def charge(self, whose: str, spent_s: float, times: int = REST, credit_s: float = 0.0) -> None:
        """Let the caller rest for so many times of what it spent, if others had to wait for it; less what it rested before unasked."""
        now = self._now()
        if self._has_others():
            self._rests_until = {each: until for each, until in self._rests_until.items() if until > now - CREDIT_S}
            rested = now - credit_s
            self._rests_until[whose] = max(rested, self._rests_until.get(whose, rested)) + min(times * spent_s, REST_MOST_S)

    async def in_pieces(
        self, whose: str, parts: Sequence[T], settle: Callable[[], Awaitable[object]] | None = None
    ) -> AsyncIterator[Sequence[T]]:
        """A few parts at a time, between which others go on; what was done with them is the caller's to rest for.

        While there are others, a caller's pieces come one after the other, with pauses, however many requests they are in. What each began
        elsewhere is let settle before the next.
        """
        spent_s = 0.0
        try:
            for start in range(0, len(parts), PIECE):
                if start:
                    await self._let_others_go_on(whose)
                began = time.thread_time()
                yield parts[start : start + PIECE]
                took_s = time.thread_time() - began
                spent_s += took_s
                self._next_piece_at[whose] = self._now() + took_s * PAUSE
                if settle is not None:
                    await settle()
        finally:
            if len(parts) > MANY:
                self.charge(whose, spent_s)

    async def _let_others_go_on(self, whose: str) -> None:
        left_s = 0.0
        while left_s >= 0:  # Another of the caller's requests may have been faster.
            await asyncio.sleep(left_s)
            left_s = self._next_piece_at.get(whose, 0.0) - self._now() if self._has_others() else -1.0

    def _left_s(self, whose: str) -> float:
        return self._rests_until.get(whose, -math.inf) - self._now()

    def _take(self, whose: str, size_bytes: int) -> None:
        for taken, most, status in (
            (self._bytes[whose], self._most_bytes_each, 429),
            (self._bytes.total(), self._most_bytes, 503),
        ):
            if taken + size_bytes > most:
                retry = ((b"retry-after", b"1"), (b"connection", b"close"))
                raise WireError("too_many_requests", status, f"{most // MIB:,} MiB of bodies are being read: try again", retry)
        self._bytes[whose] += size_bytes


class Room:
    """What one body takes while it comes."""

    def __init__(self, take: Callable[[str, int], None], whose: str) -> None:
        self._take = take
        self._whose = whose
        self.size_bytes: int = 0

    def grow_to(self, size_bytes: int) -> None:
        """Count the body as so long; refuse it if there is no room."""
        if size_bytes > self.size_bytes:
            self._take(self._whose, size_bytes - self.size_bytes)
            self.size_bytes = size_bytes
