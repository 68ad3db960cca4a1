"""Calls of the functions for one lease or entry at a time, with plain arguments: a command as JSON costs several times as much."""

from typing import Any

from msgspec import Raw, json

from holdfast.commands import Acquire, Change, Command, LeaseName, Read, Release, Renew, Write
from holdfast.stores.postgres.statements import Call, in_schema


class Singles:
    """The calls of one schema."""

    def __init__(self, schema: str) -> None:
        self._acquire = in_schema("select {}.acquire(%s, %s, %s, %s, %s, %s)", schema)
        self._renew = in_schema("select {}.renew(%s, %s, %s, %s)", schema)
        self._release = in_schema("select {}.release(%s, %s, %s, %s)", schema)
        self._write = in_schema("select {}.write(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", schema)
        self._get = in_schema("select {}.get(%s, %s::text[])", schema)

    def call(self, command: Command[Any], command_id: str) -> Call | None:
        """The call that answers the command, where a function of its own does: not what is of many, or all or nothing."""
        if isinstance(command, Acquire) and command.default is None and not command.all_or_none:
            grant = (command.dict or "", command.key, command.holder, command.lease_id)
            return Call(self._acquire, (command_id, *grant, command.lease_s))
        if isinstance(command, Renew) and len(command.names) == 1 and not command.all_or_none:
            return Call(self._renew, (*named(command.names[0]), command.lease_s))
        if isinstance(command, Release) and len(command.names) == 1 and not command.all_or_none:
            return Call(self._release, (command_id, *named(command.names[0])))
        if isinstance(command, Write) and len(command.changes) == 1 and not command.all_or_none:
            return Call(self._write, (command_id, command.dict, *parts_of(command.changes[0])))
        if isinstance(command, Read) and command.keys is not None and not command.anchor:
            return Call(self._get, (command.dict, list(command.keys)))
        return None


def named(lease: LeaseName) -> tuple[str, str, str]:
    """Its dict, empty for a lease of no dict, its key and its id."""
    return lease.dict or "", lease.key, lease.lease_id


def parts_of(change: Change) -> tuple[Any, ...]:
    """What the function is given of a change."""
    given = json.encode(change.by) if change.do == "increment" else change.value
    condition = (change.expect, text_of(change.expected), change.revision, change.lease, change.fence)
    return (change.key, change.do, text_of(given), *condition, change.ttl_s)


def text_of(value: Raw | bytes | None) -> str | None:
    """A value as the store keeps it."""
    return None if value is None else bytes(value).decode()
