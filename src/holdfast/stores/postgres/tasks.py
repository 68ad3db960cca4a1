"""The PostgreSQL store for tasks."""

from typing import TypeVar

from holdfast.commands import Command
from holdfast.stores.async_face import AsyncFace
from holdfast.stores.postgres._async.asking import execute, wait
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.waiting.waiters import Mark

R = TypeVar("R")


class AsyncPostgresStore(AsyncFace[PostgresStore]):
    """The async face of a PostgreSQL store."""

    async def execute(self, command: Command[R]) -> R:
        return await execute(self.store, command)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await wait(self.store, mark, timeout_s, due_in_s, poll_s)
