"""Holds a claim or lease while a body runs, and releases it however the body ends."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from weakref import finalize

from holdfast.errors import HoldfastError
from holdfast.holding.hold import Hold
from holdfast.holding.keepalive import Keepalive
from holdfast.holding.with_block import AsyncBody


class AsyncHolding:
    """A body that runs while something is held; make it when the body begins, and `leave` it when it ends."""

    def __init__(self, keepalive: Keepalive, hold: Hold) -> None:
        self.hold = hold
        self._keepalive = keepalive
        # Should an interrupt come at a moment that no code can guard, and nobody leave: it then ends by itself. Not `__del__`, which would
        # run after every body, and swallow an interrupt that comes while it does.
        self._never_left = finalize(self, keepalive.drop, hold)
        self._never_left.atexit = False
        keepalive.add(hold)
        self._body = AsyncBody(hold)

    async def leave(self, error: BaseException | None, settle: Callable[[], Awaitable[bool]]) -> None:
        """End the hold as `settle` says, and raise if it was lost and the body does not raise anyway.

        `settle` gives back or settles what may still be held, and returns whether it was. It runs also when the body was cancelled or
        interrupted, but not when it is lost. Nothing happens if the body gave it back already, nor in a forked child, where the hold is the
        parent's.
        """
        self._drop()
        is_ours = self._body.leave(error)
        if self.hold.is_inherited or (self.hold.is_over and not is_ours):
            return
        if self.hold.lost:
            # The store is not asked: it may be away, which is how most are lost, and in a moment it is over there too.
            self.hold.tell_lost("its lease ended before the body did")
            is_held = False
        elif error is None or is_ours:
            is_held = await settle()
        else:
            is_held = await self._settle_failed(error, settle)
        if is_held:
            return
        if error is None or is_ours:
            raise self.hold.error() from error
        error.add_note(str(self.hold.error()))

    async def _settle_failed(self, error: BaseException, settle: Callable[[], Awaitable[bool]]) -> bool:
        try:
            return await settle()
        except HoldfastError as failure:
            error.add_note(f"{self.hold.describe()} could not be given back, and ends by itself: {failure}")
            return True

    async def abandon(self, settle: Callable[[], Awaitable[bool]]) -> None:
        """Settle what is still held after `leave` itself was cancelled or interrupted: nothing must stay behind."""
        self._drop()
        if not self.hold.lost and not self.hold.is_over:
            with suppress(HoldfastError):
                await settle()

    def _drop(self) -> None:
        self._keepalive.drop(self.hold)
        self._never_left.detach()
