"""Executing commands and waiting, through connections that send a request and read its reply."""

from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.commands import Command
from holdfast.stores.http.protocol import PATHS, encode_command
from holdfast.stores.http.replies import Reply
from holdfast.stores.retrying import Tries, named, retry_async
from holdfast.stores.undo_cancelled import take_back_if_cancelled
from holdfast.stores.waiting.announcements import wait_for_async
from holdfast.stores.waiting.waiters import Mark

if TYPE_CHECKING:
    from holdfast.stores.http.store import HttpStore

R = TypeVar("R")

ANNOUNCE_S = 2.0
"""The longest that a first wait takes until the server has heard of it, which gives its own store half of that."""


class AsyncSends(Protocol):
    """What sends requests: connections."""

    async def send(self, method: str, path: str, body: bytes | None = None) -> Reply:
        """Send a request and read the reply; raises `Lost` if there is none."""
        ...


async def execute(store: "HttpStore", connections: AsyncSends, command: Command[R]) -> R:
    """See `Store.execute`."""
    store.refuse_if_closed()
    command.measure(store.limits)
    command = named(command)
    path, body = PATHS[type(command)], encode_command(command)

    async def attempt() -> R:
        store.refuse_if_closed()
        return store.answer(command, await connections.send("POST", path, body))

    try:
        return await retry_async(attempt, Tries(store.patience), store.pause_async)
    except BaseException as error:
        take_back_if_cancelled(store, error, command)
        raise


async def wait(store: "HttpStore", mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
    """See `Store.wait`."""
    with store.listener.on(mark.topic) as announced:
        if announced is None:
            await store.waiters.wait_async(mark, timeout_s, due_in_s, store.poll_s(mark.topic, poll_s))
        elif timeout_s > 0:
            # What came before told nobody, so the caller asks once more.
            await wait_for_async(announced, ANNOUNCE_S)
            mark.begin_anew()
