"""Admits requests in turns, so that many requests of one caller delay others only by a few."""

import asyncio
from collections import Counter
from typing import Final

from msgspec import MsgspecError

from holdfast.commands.request import current
from holdfast.errors import NotAllowed
from holdfast.server.asgi import App, Receive, Scope, Send
from holdfast.server.load.fair_store import Active, Rounds
from holdfast.stores.http.problems import WireError

REFUSALS: Final = 100
"""So many requests that cannot be right a caller may send in a second, while there are others; the answers to more come late."""
LATE_S: Final = 0.1

MISTAKES: Final = (ValueError, MsgspecError, NotAllowed, WireError)


class Fair:
    """Stands behind those who count requests and know who asks."""

    def __init__(self, app: App, active: Active) -> None:
        self._app = app
        self._active = active
        self._rounds = Rounds(active)
        self._refusals: Counter[str] = Counter()
        self._until = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        whose = current.get().whose
        if not self._rounds.may_enter(whose):
            await self._rounds.wait(whose)
        try:
            await self._app(scope, receive, send)
        except MISTAKES as error:
            if self._is_one_too_many(whose):
                # Without what the frames hold, such as a body, which is no longer counted.
                error.__traceback__ = None
                await asyncio.sleep(LATE_S)
            raise

    def _is_one_too_many(self, whose: str) -> bool:
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            self._refusals.clear()
            self._until = now + 1.0
        self._refusals[whose] += 1
        return self._refusals[whose] > REFUSALS and self._active.count > 1
