"""The attributes that the async side of a store takes from the store."""

import asyncio
from typing import Generic, TypeVar

from holdfast.codec import Limits
from holdfast.stores import Guarantees, Store
from holdfast.stores.waiting.waiters import Mark, Waiters

S = TypeVar("S", bound=Store)


class AsyncFace(Generic[S]):
    """The async face of a store; each kind adds how it executes and waits."""

    def __init__(self, store: S) -> None:
        self.store = store
        self.url: str = store.url
        self.limits: Limits = store.limits
        self.waiters: Waiters = store.waiters

    @property
    def guarantees(self) -> Guarantees:
        """Those of the store; where they are asked for once, that blocks."""
        return self.store.guarantees

    def mark(self, topic: str) -> Mark:
        return self.store.mark(topic)

    def wall_offset_us(self) -> int:
        return self.store.wall_offset_us()

    async def aclose(self) -> None:
        await asyncio.to_thread(self.store.close)
