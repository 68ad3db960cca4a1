"""Executing a command in a store that sends one request for it."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from holdfast.commands import Command
from holdfast.stores.networked import Requests
from holdfast.stores.retrying import Tries, named, retry_async
from holdfast.stores.undo_cancelled import take_back_if_cancelled

R = TypeVar("R")


async def execute(store: Requests, send: Callable[..., Awaitable[Any]], command: Command[R]) -> R:
    """See `Store.execute`; `send` is called with what the request consists of, and returns the reply."""
    store.refuse_if_closed()
    command.measure(store.limits)
    command = named(command)
    was_sent = False

    async def attempt() -> R:
        nonlocal was_sent
        store.refuse_if_closed()
        request = store.request(command)
        was_sent = True
        return store.answer(command, await send(*request))

    try:
        return await retry_async(attempt, Tries(store.patience), store.pause_async)
    except BaseException as error:
        if was_sent:
            take_back_if_cancelled(store, error, command)
        raise
