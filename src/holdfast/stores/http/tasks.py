"""The HTTP store for tasks."""

from typing import TypeVar

from holdfast.commands import Command
from holdfast.stores._async.networked import execute
from holdfast.stores.async_face import AsyncFace
from holdfast.stores.http._async.waiting import wait
from holdfast.stores.http.async_connections import AsyncConnections
from holdfast.stores.http.store import HttpStore
from holdfast.stores.waiting.waiters import Mark

R = TypeVar("R")


class AsyncHttpStore(AsyncFace[HttpStore]):
    """The same store, for tasks."""

    def __init__(self, store: HttpStore) -> None:
        super().__init__(store)
        self.connections: AsyncConnections = AsyncConnections(store.address)

    async def execute(self, command: Command[R]) -> R:
        return await execute(self.store, self.connections.send, command)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await wait(self.store, mark, timeout_s, due_in_s, poll_s)

    async def aclose(self) -> None:
        await super().aclose()
        await self.connections.aclose()
