# Generated from src/holdfast/stores/http/_async/asking.py by tools/unasync.py; do not edit.
"""Executing commands and waiting, through connections that send a request and read its reply."""

from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.commands import Command
from holdfast.stores.http.protocol import PATHS, encode_command
from holdfast.stores.http.replies import Reply
from holdfast.stores.retrying import Tries, named, retry
from holdfast.stores.undo_cancelled import take_back_if_cancelled
from holdfast.stores.waiting.announcements import wait_for
from holdfast.stores.waiting.waiters import Mark

if TYPE_CHECKING:
    from holdfast.stores.http.store import HttpStore

R = TypeVar("R")

ANNOUNCE_S = 2.0
"""The longest that a first wait takes until the server has heard of it, which gives its own store half of that."""


class Sends(Protocol):
    """What sends requests: connections."""

    def send(self, method: str, path: str, body: bytes | None = None) -> Reply:
        """Send a request and read the reply; raises `Lost` if there is none."""
        ...


def execute(store: "HttpStore", connections: Sends, command: Command[R]) -> R:
    """See `Store.execute`."""
    store.refuse_if_closed()
    command.measure(store.limits)
    command = named(command)
    path, body = PATHS[type(command)], encode_command(command)

    def attempt() -> R:
        store.refuse_if_closed()
        return store.answer(command, connections.send("POST", path, body))

    try:
        return retry(attempt, Tries(store.patience), store.pause)
    except BaseException as error:
        take_back_if_cancelled(store, error, command)
        raise


def wait(store: "HttpStore", mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
    """See `Store.wait`."""
    with store.listener.on(mark.topic) as announced:
        if announced is None:
            store.waiters.wait(mark, timeout_s, due_in_s, store.poll_s(mark.topic, poll_s))
        elif timeout_s > 0:
            # What came before told nobody, so the caller asks once more.
            wait_for(announced, ANNOUNCE_S)
            mark.begin_anew()
