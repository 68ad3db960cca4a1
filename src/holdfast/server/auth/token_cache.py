"""The server's cache of tokens, at most one second old.

The store is the truth. What was read is used again until the store hints that a token changed, or is `KNOWN_S` old: a hint may be lost, and
then age alone ends what a revoked token was good for.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from msgspec import json

from holdfast.commands import Read
from holdfast.server.auth.tokens import EVER_MADE, KNOWN_S, Token
from holdfast.server.freshness import Asked, Hints
from holdfast.server.namespaces.names import TOKENS
from holdfast.stores import AsyncStore, Store

KNOWN_MAX: Final = 10_000


class KnownTokens:
    """Looks tokens up; used on one event loop."""

    def __init__(self, store: Store, tasks: AsyncStore, now: Callable[[], float] = time.monotonic) -> None:
        self._tasks = tasks
        self._hints = Hints(store, TOKENS, KNOWN_S, now)
        self._known: dict[str, tuple[Token, Asked]] = {}
        self._asking: dict[str, tuple[asyncio.Task[Token | None], Asked]] = {}
        self._is_open: Asked | None = None
        self._ever_made = False

    def close(self) -> None:
        """Hear no hints any more."""
        self._hints.close()

    def when_changed(self, loop: asyncio.AbstractEventLoop, tell: Callable[[], object]) -> None:
        """Call this on the loop after every hint that a token changed."""
        self._hints.when_changed(loop, tell)

    def are_known_not_needed(self) -> bool:
        """Whether no token is needed, and that is known without asking the store."""
        return not self._ever_made and self._hints.is_fresh(self._is_open)

    async def asks(self) -> bool:
        """Whether callers need a token: a token was made here, however long ago."""
        if not self._ever_made and not self.are_known_not_needed():
            asked = self._hints.asking()
            if (await self._tasks.execute(EVER_MADE)).settings:
                self._ever_made = True
            self._is_open = asked
        return self._ever_made

    def known(self, token_id: str) -> Token | None:
        """The token of this id, if it is known without asking the store."""
        known = self._known.get(token_id)
        return known[0] if known is not None and self._hints.is_fresh(known[1]) else None

    async def find(self, token_id: str) -> Token | None:
        """The token of this id, None if it was revoked, has expired or was never made."""
        if (known := self.known(token_id)) is not None:
            return known
        # One question for all who bring the token now, however many they are; it goes on when the one who began it leaves.
        asking = self._asking.get(token_id)
        if asking is None or not self._hints.is_fresh(asking[1]):
            asked = self._hints.asking()
            asking = self._asking[token_id] = (asyncio.create_task(self._ask(token_id, asked)), asked)
            asking[0].add_done_callback(lambda task: self._answered(token_id, task))
        return await asyncio.shield(asking[0])

    def _answered(self, token_id: str, task: "asyncio.Task[Token | None]") -> None:
        if self._asking.get(token_id, (None,))[0] is task:
            del self._asking[token_id]
        if not task.cancelled():
            task.exception()  # Whoever waits for it is told; perhaps nobody does any more.

    async def _ask(self, token_id: str, asked: Asked) -> Token | None:
        entries = (await self._tasks.execute(Read(TOKENS, [token_id]))).entries
        if not entries:
            self._known.pop(token_id, None)
            return None
        token = json.decode(entries[0].value, type=Token)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[token_id] = (token, asked)
        return token
