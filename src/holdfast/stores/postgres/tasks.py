"""The PostgreSQL store for tasks."""

import asyncio
from contextlib import suppress
from typing import TypeVar

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import HoldfastError, LeaseHeld
from holdfast.stores import Guarantees
from holdfast.stores.postgres.calls import Asking, answer, answer_held
from holdfast.stores.postgres.store import ANNOUNCE_S, PostgresStore
from holdfast.stores.retrying import Lost, Tries, retry_async
from holdfast.stores.undo_cancelled import take_back_if_cancelled
from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")


class AsyncPostgresStore:
    """The async face of a PostgreSQL store."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.url: str = store.url
        self.limits: Limits = store.limits
        self.guarantees: Guarantees = store.guarantees
        self.waiters: Waiters = store.waiters

    async def execute(self, command: Command[R]) -> R:
        command.measure(self.limits)
        self.store.refuse_if_closed()
        asking = Asking(self.store.calls, command)
        try:
            found = answer(command, await retry_async(lambda: self.store.caller.ask_async(asking.call), Tries()))
            if not command.reads_only and self.store.is_time_to_prune():
                # As for threads: the command was applied.
                with suppress(Lost, HoldfastError):
                    await self.store.caller.ask_async(self.store.calls.prune)
            return found  # noqa: TRY300 - a cancellation is heard up to here
        except LeaseHeld as held:
            return answer_held(command, held)
        except BaseException as error:
            if asking.was_sent:
                take_back_if_cancelled(self.store, error, asking.named())
            raise

    def mark(self, topic: str) -> Mark:
        return self.store.mark(topic)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        announced = self.store.listen(mark.topic)
        if announced is None:
            await self.store.waiters.wait_async(mark, timeout_s, due_in_s, poll_s)
        elif timeout_s > 0:
            # What came before told nobody, so the caller asks once more.
            await asyncio.wait([asyncio.wrap_future(announced)], timeout=ANNOUNCE_S)

    def wall_offset_us(self) -> int:
        return self.store.wall_offset_us()

    async def aclose(self) -> None:
        await asyncio.to_thread(self.store.close)
