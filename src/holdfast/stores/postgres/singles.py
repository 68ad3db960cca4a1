"""Calls of the functions for one lease at a time, with plain arguments: a command as JSON costs several times as much."""

from typing import Any

from holdfast.commands import Acquire, Command, LeaseName, Release, Renew
from holdfast.stores.postgres.statements import Call, in_schema


class Singles:
    """The calls of one schema."""

    def __init__(self, schema: str) -> None:
        self._acquire = in_schema("select {}.acquire(%s, %s, %s, %s, %s, %s)", schema)
        self._renew = in_schema("select {}.renew(%s, %s, %s, %s)", schema)
        self._release = in_schema("select {}.release(%s, %s, %s, %s)", schema)

    def call(self, command: Command[Any], command_id: str) -> Call | None:
        """The call that answers the command, where a function of its own does: not what is of many, or all or nothing."""
        if isinstance(command, Acquire) and command.default is None and not command.all_or_none:
            grant = (command.dict or "", command.key, command.holder, command.lease_id)
            return Call(self._acquire, (command_id, *grant, command.lease_s))
        if isinstance(command, Renew) and len(command.names) == 1 and not command.all_or_none:
            return Call(self._renew, (*named(command.names[0]), command.lease_s))
        if isinstance(command, Release) and len(command.names) == 1 and not command.all_or_none:
            return Call(self._release, (command_id, *named(command.names[0])))
        return None


def named(lease: LeaseName) -> tuple[str, str, str]:
    """Its dict, empty for a lease of no dict, its key and its id."""
    return lease.dict or "", lease.key, lease.lease_id
