"""Who is cancelled while a PostgreSQL store answers leaves nothing held."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.commands import Acquire, Claim, Command, Together
from holdfast.stores.postgres.sessions import Session
from holdfast.stores.postgres.statements import Call
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.postgres.tasks import AsyncPostgresStore
from holdfast.testing.conformance.asking import JOBS, acquire, put, stats
from tests.postgres import own_postgres_url

pytestmark = pytest.mark.anyio

LONG_S = 3_600.0


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(own_postgres_url())
    yield store
    store.close()


async def cancelled_once_answered(tasks: AsyncPostgresStore, command: Command[Any]) -> None:
    """Execute a command, and be cancelled when the server has done it and its answer is not there yet."""
    ask, answered = Session.ask_async, asyncio.Event()

    async def slowly(session: Session, call: Call, timeout_s: float) -> str:
        await ask(session, call, timeout_s)
        answered.set()
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "ask_async", slowly)
        executing = asyncio.create_task(tasks.execute(command))
        await answered.wait()
    executing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await executing
    for thread in threading.enumerate():
        if thread.name == "holdfast-take-back":
            await asyncio.to_thread(thread.join, 60)


async def test_a_claim_is_given_back(store: PostgresStore) -> None:
    put(store, "a")
    tasks = AsyncPostgresStore(store)
    await cancelled_once_answered(tasks, Claim(JOBS, "cancelled", LONG_S))
    assert stats(store).ready == 1, "somebody who was cancelled still holds a message"
    await tasks.aclose()


async def test_what_was_taken_is_put_again(store: PostgresStore) -> None:
    put(store, "a")
    tasks = AsyncPostgresStore(store)
    await cancelled_once_answered(tasks, Claim(JOBS, "cancelled", LONG_S, take=True))
    assert stats(store).ready == 1
    await tasks.aclose()


async def test_a_lease_is_given_back_also_one_of_a_step(store: PostgresStore) -> None:
    tasks = AsyncPostgresStore(store)
    for command in (Acquire(None, "lock", "cancelled", "one", LONG_S), Together([Acquire(None, "lock", "cancelled", "two", LONG_S)])):
        await cancelled_once_answered(tasks, command)
    assert acquire(store, "lock", lease_id="mine").lease.lease_id == "mine"
    await tasks.aclose()
