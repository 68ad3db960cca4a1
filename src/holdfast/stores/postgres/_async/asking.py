"""Executing commands and waiting; every error of the driver becomes one of ours."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import psycopg

from holdfast.commands import Command
from holdfast.errors import HoldfastError, LeaseHeld
from holdfast.stores.postgres.caller import Caller
from holdfast.stores.postgres.calls import Asking, answer, answer_held
from holdfast.stores.postgres.failures import UNDEFINED, refuse_if_moved
from holdfast.stores.postgres.pool import NoSession
from holdfast.stores.postgres.statements import Call
from holdfast.stores.retrying import Lost, Tries, retry_async
from holdfast.stores.undo_cancelled import take_back_if_cancelled
from holdfast.stores.waiting.announcements import wait_for_async
from holdfast.stores.waiting.waiters import Mark

if TYPE_CHECKING:
    from holdfast.stores.postgres.store import PostgresStore

R = TypeVar("R")

CONNECT_S = 5.0
"""How long one try waits for a session of the pool."""

ANNOUNCE_S = 1.0
"""The longest that a first wait takes to announce itself; where that is not enough, waiting is polling."""


async def execute(store: "PostgresStore", command: Command[R]) -> R:
    """See `Store.execute`."""
    command.measure(store.limits)
    store.refuse_if_closed()
    asking = Asking(store.calls, command)
    try:
        found = answer(command, await retry_async(lambda: ask(store.caller, asking.call), Tries(), store.pause_async))
        if not command.reads_only and store.is_time_to_prune():
            # The command was applied, so nothing that happens here is the caller's: somebody prunes again soon.
            with suppress(Lost, HoldfastError):
                await ask(store.caller, store.calls.prune)
        return found  # noqa: TRY300 - an interrupt or a cancellation is heard up to here
    except LeaseHeld as held:
        return answer_held(command, held)
    except BaseException as error:
        if asking.was_sent:
            take_back_if_cancelled(store, error, asking.named())
        raise


async def ask(caller: Caller, make_call: Callable[[], Call], timeout_s: float | None = None) -> str:
    """Make the call, which is made up once there is a session to send it on.

    One that is not answered in time is `Lost`, and the next is made on a new connection. A cancellation is heard at once, and the
    session closed.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        session = await caller.pool.take_async(CONNECT_S if timeout_s is None else min(timeout_s, CONNECT_S))
    except (NoSession, psycopg.Error) as error:
        raise caller.without_session(error) from None
    try:
        return await session.ask_async(make_call(), caller.answer_s if end is None else max(0.0, end - time.monotonic()))
    except psycopg.Error as error:
        if isinstance(error, UNDEFINED):
            with suppress(psycopg.Error):
                refuse_if_moved((await session.ask_async(caller.calls.moved) or None,), caller.where)
        raise caller.failed(session, error) from error
    finally:
        caller.pool.give_back(session)


async def wait(store: "PostgresStore", mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
    """See `Store.wait`."""
    announced = store.listen(mark.topic)
    if announced is None:
        await store.waiters.wait_async(mark, timeout_s, due_in_s, poll_s)
    elif timeout_s > 0:
        # What came before told nobody, so the caller asks once more.
        await wait_for_async(announced, ANNOUNCE_S)
