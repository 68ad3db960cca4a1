"""The tokens of a store as one server knows them, which is never what was true more than a second ago.

The store is the truth. What was read is used again until the store hints that a token changed, or is `KNOWN_S` old: a hint may be lost, and
then age alone ends what a revoked token was good for.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct, json

from holdfast.commands import Read
from holdfast.commands.topics import dict_topic, watch_topic
from holdfast.server.namespaces import TOKENS
from holdfast.server.tokens import EVER_MADE, KNOWN_S, Token
from holdfast.stores import AsyncStore, Store

KNOWN_MAX: Final = 10_000
TOPIC: Final = watch_topic(dict_topic(TOKENS))


class Known(Struct, frozen=True):
    """What was read, after how many hints, and the moment before it was asked for."""

    token: Token | None
    hints: int
    asked_at: float


class KnownTokens:
    """Looks tokens up; used on one event loop, hinted from any thread."""

    def __init__(self, store: Store, tasks: AsyncStore, now: Callable[[], float] = time.monotonic) -> None:
        self._tasks = tasks
        self._now = now
        self._hints = 0
        self._known: dict[str, Known] = {}
        self._is_open: Known | None = None
        self._ever_made = False
        self._tell: Callable[[], object] = lambda: None
        store.mark(TOPIC).leave()  # The store may have to begin to listen itself.
        self.close: Callable[[], None] = store.waiters.listen(TOPIC, self._hint)
        store.waiters.announce(TOPIC)

    def when_changed(self, loop: asyncio.AbstractEventLoop, tell: Callable[[], object]) -> None:
        """Call this on the loop after every hint."""
        self._tell = lambda: loop.call_soon_threadsafe(tell)

    def are_known_not_needed(self) -> bool:
        """Whether nobody needs a token, and that is known without asking the store."""
        return not self._ever_made and self._is_fresh(self._is_open)

    async def asks(self) -> bool:
        """Whether whoever comes needs a token: a token was made here, if ever so long ago."""
        if not self._ever_made and not self.are_known_not_needed():
            asked = self._asking()
            if (await self._tasks.execute(EVER_MADE)).settings:
                self._ever_made = True
            self._is_open = asked
        return self._ever_made

    async def find(self, token_id: str) -> Token | None:
        """The token of this id, None if it was revoked, has expired or was never made."""
        known = self._known.get(token_id)
        if known is not None and self._is_fresh(known):
            return known.token
        asked = self._asking()
        entries = (await self._tasks.execute(Read(TOKENS, [token_id]))).entries
        token = json.decode(entries[0].value, type=Token) if entries else None
        if token is None:
            self._known.pop(token_id, None)
        else:
            self._remember(Known(token, asked.hints, asked.asked_at), token)
        return token

    def _remember(self, known: Known, token: Token) -> None:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[token.id] = known

    def _asking(self) -> Known:
        # Before the question: what changes while it is under way makes the answer stale.
        return Known(None, self._hints, self._now())

    def _is_fresh(self, known: Known | None) -> bool:
        return known is not None and known.hints == self._hints and self._now() - known.asked_at < KNOWN_S

    def _hint(self, count: int) -> None:
        del count
        self._hints += 1
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._tell()
