"""Renewals on separate connections."""

from typing import TypeVar

from holdfast.commands import Command
from holdfast.stores.postgres._sync.asking import ask
from holdfast.stores.postgres.address import Address
from holdfast.stores.postgres.caller import Caller
from holdfast.stores.postgres.calls import Asking, Calls, answer
from holdfast.stores.retrying import ONCE, Tries, retry

R = TypeVar("R")

MOST = 4
"""One is enough, while the server answers: the others are for tries that come while one before still waits for a silent server."""


class PostgresRenewer:
    """See `Renewer`."""

    def __init__(self, address: Address, calls: Calls) -> None:
        self._calls = calls
        self._caller = Caller(address, calls, MOST)

    def execute(self, command: Command[R], timeout_s: float) -> R:
        asking = Asking(self._calls, command)
        return answer(command, retry(lambda: ask(self._caller, asking.call, timeout_s), Tries(ONCE)))

    def close(self) -> None:
        self._caller.pool.close()
