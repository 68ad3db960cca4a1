"""Renewals on a separate connection."""

from typing import TYPE_CHECKING, TypeVar

from holdfast.commands import Command
from holdfast.stores.http.connections import Connections
from holdfast.stores.http.protocol import PATHS, encode_command
from holdfast.stores.retrying import ONCE, Tries, named, retry

if TYPE_CHECKING:
    from holdfast.stores.http.store import HttpStore

R = TypeVar("R")


class HttpRenewer:
    """See `Renewer`."""

    def __init__(self, store: "HttpStore") -> None:
        self._store = store
        self._connections = Connections(store.address)

    def execute(self, command: Command[R], timeout_s: float) -> R:
        command = named(command)
        path, body = PATHS[type(command)], encode_command(command)
        return retry(lambda: self._store.answer(command, self._connections.send("POST", path, body, timeout_s)), Tries(ONCE))

    def close(self) -> None:
        self._connections.close()
