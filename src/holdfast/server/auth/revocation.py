"""Ends waiting requests of revoked tokens: when the store hints at a change, and every few seconds."""

import asyncio
from contextlib import suppress
from typing import Final

from holdfast.errors import HoldfastError
from holdfast.server.auth.token_cache import KnownTokens
from holdfast.server.long_requests import Lasting
from holdfast.stores.http.problems import WireError

CHECK_S: Final = 10.0
"""How often those who wait are checked without a hint: it may have been lost, and a token that expires gives none."""


class Dismissals:
    """Checks those who wait, on the running event loop, until it is closed."""

    def __init__(self, tokens: KnownTokens, lasting: Lasting, every_s: float = CHECK_S) -> None:
        self._lasting = lasting
        self._every_s = every_s
        self._changed = asyncio.Event()
        tokens.when_changed(asyncio.get_running_loop(), self._changed.set)
        self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._changed.wait()
            self._changed.clear()
            for caller in self._lasting.callers():
                try:
                    await caller.stay()
                except WireError:
                    self._lasting.dismiss(caller.name)
                except HoldfastError:
                    break  # The store does not answer: nothing of it can reach them either. Checked again soon.
