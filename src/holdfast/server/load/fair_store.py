"""The store shared by callers: each has its share of the places, and they take turns."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.commands.request import Request, current
from holdfast.commands.sizes import LONG_BYTES, brought, is_large, may_be_long
from holdfast.commands.together import only_reads
from holdfast.server.load.body_budget import CREDIT_S, Budget
from holdfast.stores import AsyncStore, Guarantees
from holdfast.stores.async_batches import REST as REST_OF_WRITER
from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")

PLACES: Final = 256
"""How many commands are at the store at once: enough for commits to be shared, and for few to wait behind the others."""

LARGE_PLACES: Final = 4
"""How many of these are large: fewer than there are connections to any store."""

ROUND: Final = 8
"""How many requests of one caller are let in at once, while there are others: their answers wait for no more."""

UNNOTICED_S: Final = 0.01
"""Who keeps others waiting for less than this need not rest for it."""

REST_OF_READER: Final = 400
"""So many times as long as a read kept small commands waiting, its caller's next is held back: few of them may meet one."""

WRITE_S: Final = 0.00005
"""A write is blamed for no more than this for each of its items: what others waited for beside it is not its fault."""

REST_BESIDE: Final = 10
"""So many times as long as a large read took, though small commands went on beside it, its caller's next is held back."""
CREDIT_BESIDE_S: Final = 5.0

ACTIVE_S: Final = 1.0
"""Who asked within this time counts as one of those who share."""


class Active:
    """Counts the callers of the last moments."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._latest: set[str] = set()
        self._before: set[str] = set()
        self._until = now()
        self.count: int = 1

    def see(self, whose: str) -> None:
        """Note that a caller asks."""
        now = self._now()
        if now >= self._until:
            self._before = self._latest if now < self._until + ACTIVE_S else set()
            self._latest, self._until = set(), now + ACTIVE_S
        elif whose in self._latest:
            return
        self._latest.add(whose)
        self.count = len(self._latest | self._before)


class Rounds:
    """Lets requests in: while several callers are active, so many of each in one round of the event loop."""

    def __init__(self, active: Active) -> None:
        self._active = active
        self._entered: Counter[str] = Counter()
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}
        self._is_counting = False

    def may_enter(self, whose: str) -> bool:
        """Whether a request is let in now; else it is to `wait`."""
        self._active.see(whose)
        if self._active.count == 1 and not self._lines:
            return True
        if not self._is_counting:
            self._is_counting = True
            loop = asyncio.get_running_loop()
            loop.call_soon(self._begin_next, loop)
        if self._entered[whose] >= ROUND or whose in self._lines:
            return False
        self._entered[whose] += 1
        return True

    async def wait(self, whose: str) -> None:
        """Wait for the round in which this one is let in."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(whose, deque()).append(place)
        await place

    def _begin_next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._entered.clear()
        for whose, line in list(self._lines.items()):
            while line and self._entered[whose] < ROUND:
                place = line.popleft()
                if not place.done():  # Its client may have left.
                    place.set_result(None)
                    self._entered[whose] += 1
            if not line:
                del self._lines[whose]
        self._is_counting = bool(self._lines)
        if self._is_counting:
            loop.call_soon(self._begin_next, loop)


class Turns:
    """So many places: while several callers are active, each has its part of them."""

    def __init__(self, places: int, active: Active) -> None:
        self._places = places
        self._active = active
        self._taken: dict[str, int] = {}
        self.count: int = 0
        # Those who wait, of each caller, in the order of the callers' turns.
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def place(self, whose: str) -> AsyncIterator[None]:
        """Have a place while the block runs."""
        if not self.enter(whose):
            await self.wait(whose)
        try:
            yield
        finally:
            self.leave(whose)

    def enter(self, whose: str) -> bool:
        """Take a place if there is one; else the caller is to `wait`."""
        if not self._has_place(whose):
            return False
        self.count += 1
        self._taken[whose] = self._taken.get(whose, 0) + 1
        return True

    def _has_place(self, whose: str) -> bool:
        return self.count < self._places and self._taken.get(whose, 0) < max(1, self._places // self._active.count)

    async def wait(self, whose: str) -> None:
        """Wait for a place."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(whose, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._leave_line(whose, place)
            else:
                self.leave(whose)
            raise

    def leave(self, whose: str) -> None:
        """Give the place to the next."""
        self.count -= 1
        if self._taken[whose] == 1:
            del self._taken[whose]
        else:
            self._taken[whose] -= 1
        if self._lines:
            self._let_in()

    def _let_in(self) -> None:
        while (whose := next(filter(self._has_place, self._lines), None)) is not None:
            line = self._lines.pop(whose)
            place = line.popleft()
            if line:
                self._lines[whose] = line  # Behind the others.
            if not place.done():  # Whoever was cancelled and has not left the line yet gets no place.
                self.enter(whose)
                place.set_result(None)

    def _leave_line(self, whose: str, place: "asyncio.Future[None]") -> None:
        line = self._lines.get(whose, deque())
        if place in line:
            line.remove(place)
            if not line:
                del self._lines[whose]


class Delays:
    """Measures for how long small commands are at the store and none is answered: so long it did nothing else, as Redis does."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._waiting = 0
        self._since = now()
        self._suspects: set[Suspect] = set()

    def small_begins(self) -> None:
        """Count a small command that is at the store."""
        if self._suspects and not self._waiting:
            self._since = self._now()
        self._waiting += 1

    def small_ends(self) -> None:
        """It was answered, or given up."""
        if self._suspects:
            self._note()
            self._since = self._now()
        self._waiting -= 1

    @contextmanager
    def suspected(self) -> "Iterator[Suspect]":
        """What runs in the block may be what small commands wait for."""
        suspect = Suspect(self._now())  # Whatever small commands waited for before is not its fault.
        self._suspects.add(suspect)
        try:
            yield suspect
        finally:
            self._note()
            self._suspects.remove(suspect)

    def _note(self) -> None:
        now = self._now()
        for suspect in self._suspects if self._waiting else ():
            suspect.delayed_s += max(0.0, now - max(self._since, suspect.noted_at) - UNNOTICED_S)
            suspect.noted_at = now


class Suspect:
    """What may have kept small commands waiting, and for how long it did."""

    def __init__(self, began_at: float) -> None:
        self.noted_at: float = began_at
        self.delayed_s: float = 0.0


class FairStore:
    """An `AsyncStore` in which no caller's commands wait for more than their part of another's."""

    def __init__(self, store: AsyncStore, active: Active, budget: Budget, now: Callable[[], float]) -> None:
        self._store = store
        self._budget = budget
        self._now = now
        self._delays = Delays(now)
        self._small = Turns(PLACES, active)
        self._large = Turns(LARGE_PLACES, active)
        self.url: str = store.url
        self.limits: Limits = store.limits
        self.waiters: Waiters = store.waiters

    @property
    def guarantees(self) -> Guarantees:
        return self._store.guarantees

    async def execute(self, command: Command[R]) -> R:
        request = current.get()
        if is_large(command, self.limits):
            async with self._budget.turn(request.whose, partial(self._large.place, request.whose)):
                return await self._execute_apart(command, request, is_large=True)
        if may_be_long(command, self.limits):
            await self._budget.rest(request.whose)
            async with self._small.place(request.whose):
                return await self._execute_apart(command, request, is_large=False)
        if not self._small.enter(request.whose):
            await self._small.wait(request.whose)
        request.begin()
        self._delays.small_begins()
        try:
            return await self._store.execute(command)
        finally:
            self._delays.small_ends()
            self._small.leave(request.whose)

    async def _execute_apart(self, command: Command[R], request: Request, *, is_large: bool) -> R:
        """Execute what may keep others waiting; its caller rests for it if it is large, or has a long answer."""
        request.begin()
        began = self._now()
        answer: R | None = None
        try:
            with self._delays.suspected() as suspect:
                answer = await self._store.execute(command)
            return answer
        finally:
            if is_large or brought(answer) > LONG_BYTES:
                self._charge(command, request.whose, suspect.delayed_s, self._now() - began)

    def _charge(self, command: Command[Any], whose: str, delayed_s: float, took_s: float) -> None:
        reads = only_reads(command)
        if not reads:
            delayed_s = min(delayed_s, command.measure(self.limits) * WRITE_S)
        if delayed_s > 0:
            self._budget.charge(whose, delayed_s, REST_OF_READER if reads else REST_OF_WRITER, CREDIT_S)
        elif reads:
            self._budget.charge(whose, took_s, REST_BESIDE, CREDIT_BESIDE_S)

    def mark(self, topic: str) -> Mark:
        return self._store.mark(topic)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await self._store.wait(mark, timeout_s, due_in_s, poll_s)

    def wall_offset_us(self) -> int:
        return self._store.wall_offset_us()

    async def aclose(self) -> None:
        await self._store.aclose()
