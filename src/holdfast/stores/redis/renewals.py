"""Renewals through a connection of their own."""

from typing import TYPE_CHECKING, TypeVar

from holdfast.commands import Command
from holdfast.stores.redis.address import Address
from holdfast.stores.redis.connections import Connections
from holdfast.stores.redis.replies import read_reply
from holdfast.stores.retrying import ONCE, Tries, retry

if TYPE_CHECKING:
    from holdfast.stores.redis.store import RedisStore

R = TypeVar("R")


class RedisRenewer:
    """See `Renewer`."""

    def __init__(self, store: "RedisStore", address: Address) -> None:
        self._store = store
        self._connections = Connections(address, store.clock)

    def execute(self, command: Command[R], timeout_s: float) -> R:
        name, arguments = self._store.words(command)
        reply = retry(lambda: self._connections.run(name, arguments, timeout_s), Tries(ONCE))
        return read_reply(command, reply)

    def close(self) -> None:
        self._connections.close()
