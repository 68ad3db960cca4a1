"""Records the last use of tokens, coarsely and in the background."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from msgspec import Raw, json

from holdfast.commands import Change, Write
from holdfast.errors import HoldfastError
from holdfast.server.namespaces.names import TOKEN_USES
from holdfast.stores import AsyncStore

COARSE_S: Final = 600.0
"""A server writes the use of a token down at most this often."""

FLUSH_S = 5.0
"""So many seconds of uses are written in one command."""

KEPT_S: Final = 400 * 86_400.0
TOKENS_MAX: Final = 10_000

_log = logging.getLogger("holdfast.server")


class TokenUses:
    """Notes uses, on one event loop."""

    def __init__(self, store: AsyncStore, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._noted: dict[str, float] = {}
        self._pending: dict[str, float] = {}
        self._flushing: asyncio.Task[None] | None = None

    def note(self, token_id: str) -> None:
        """Remember that the token is used now, unless that was remembered a short while ago."""
        now = self._now()
        if now - self._noted.get(token_id, -COARSE_S) < COARSE_S:
            return
        if len(self._noted) >= TOKENS_MAX:
            self._noted.clear()
        self._noted[token_id] = now
        self._pending[token_id] = time.time()
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_later())

    async def aclose(self) -> None:
        """Write what was not written yet."""
        if self._flushing is not None:
            self._flushing.cancel()
            await self._flush()

    async def _flush_later(self) -> None:
        await asyncio.sleep(FLUSH_S)
        self._flushing = None
        await self._flush()

    async def _flush(self) -> None:
        uses, self._pending = self._pending, {}
        try:
            await self._store.execute(
                Write(TOKEN_USES, [Change(token_id, value=Raw(json.encode(at)), ttl_s=KEPT_S) for token_id, at in uses.items()])
            )
        except HoldfastError as error:
            _log.warning("the last use of tokens could not be recorded: %s", error)
