"""Renewals of a store without a network connection."""

from typing import TypeVar

from holdfast.commands import Command
from holdfast.stores import Executor

R = TypeVar("R")


class DirectRenewer:
    """Renews through the store itself, which needs no time-out."""

    def __init__(self, store: Executor) -> None:
        self._store = store

    def execute(self, command: Command[R], timeout_s: float) -> R:  # noqa: ARG002 - as the contract says
        return self._store.execute(command)

    def close(self) -> None:
        """Nothing: it has no connection of its own."""
