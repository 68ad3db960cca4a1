"""Commands as servers of earlier releases take them: without fields that those can do without."""

import re
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from holdfast.commands import Command, Together
from holdfast.errors import StoreError
from holdfast.stores.retrying import Lost

C = TypeVar("C", bound=Command[Any])

DISPENSABLE: Final = {"by_policy": False, "unstarted": False, "trace": None}
"""Fields that clients set without being asked to, and what leaves them out."""

_UNKNOWN = re.compile(r"unknown field `(\w+)`")


NO_ROUTE: Final = 404


def refuse_unknown(command: Command[Any], error: StoreError, status: int, url: str) -> None:
    """Say it where the server does not know the command at all."""
    if type(error) is StoreError and status == NO_ROUTE:
        said = f"{url} does not know the command {type(command).__name__} ({error})"
        raise StoreError(f"{said}: upgrade a server of an earlier release, or correct the path of the URL") from error


class LeftOut:
    """The fields that a server has refused as unknown to it."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()

    def learn(self, error: ValueError) -> None:
        """Raise `Lost`, for the command to be sent again, if the server refused a field that it can do without."""
        found = _UNKNOWN.search(str(error))
        if found and found[1] in DISPENSABLE:
            self._names |= {found[1]}
            raise Lost(str(error), maybe_applied=False) from error

    def without(self, command: C) -> C:
        """The command as the server takes it."""
        if not self._names:
            return command
        if isinstance(command, Together):
            return replace(command, commands=[self.without(step) for step in command.commands])
        return replace(command, **{name: DISPENSABLE[name] for name in self._names & {*command.__struct_fields__}})
