"""Limits the number of running requests, before a body is read."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from holdfast.server.asgi import SLOTS, App, Receive, Scope, Send, leave_slots
from holdfast.server.auth.callers import KEY
from holdfast.stores.http.problems import WireError

IN_FLIGHT: Final = 2_000
IN_FLIGHT_EACH: Final = 1_000
RETRY: Final = ((b"retry-after", b"1"), (b"connection", b"close"))


def everybody(scope: Scope) -> str:
    """Count all requests together."""
    del scope
    return "all"


def each_token(scope: Scope) -> str | None:
    """Count those of each token for themselves; None where no token is asked for."""
    caller = scope.get(KEY)
    return caller.commands or None if caller else None


class InFlight:
    """Lets so many requests in at once, from their head on; once one waits for something it is counted apart, by `Lasting`."""

    def __init__(self, app: App, most: int = IN_FLIGHT, status: int = 503, whose: Callable[[Scope], str | None] = everybody) -> None:
        self._app = app
        self._most = most
        self._status = status
        self._whose = whose
        self._counts: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many there are at this moment."""
        return sum(self._counts.values())

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        whose = self._whose(scope)
        return self._app(scope, receive, send) if whose is None else self._counted(whose, scope, receive, send)

    async def _counted(self, whose: str, scope: Scope, receive: Receive, send: Send) -> None:
        count = self._counts.get(whose, 0)
        if count >= self._most:
            raise WireError("too_many_requests", self._status, f"{self._most:,} requests are in progress: try again", RETRY)
        self._counts[whose] = count + 1
        slots: list[Callable[[], None]] = scope.setdefault(SLOTS, [])
        slots.append(partial(self._leave, whose))
        try:
            await self._app(scope, receive, send)
        finally:
            leave_slots(scope)

    def _leave(self, whose: str) -> None:
        if self._counts[whose] == 1:
            del self._counts[whose]
        else:
            self._counts[whose] -= 1
