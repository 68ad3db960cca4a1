"""Calls of the functions for plain commands, with plain arguments: a command as JSON costs several times as much."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw, json
from msgspec.structs import fields

from holdfast.commands import (
    Acquire,
    Change,
    Claim,
    Command,
    Extend,
    Item,
    LeaseName,
    Put,
    Read,
    Release,
    Renew,
    Settle,
    Together,
    Write,
    encode_command,
)
from holdfast.commands.command import with_fields
from holdfast.commands.plain import uses_only
from holdfast.stores.postgres.statements import Call, as_array, function

ALSO: dict[type[Command[Any]], tuple[str, ...]] = {Claim: ("take",), Acquire: ("capacity", "weight", "in_line_s", "max_waiters")}
"""What the functions know besides the plain fields."""

OPTIONS: dict[str, Any] = {field.name: field.default for field in fields(Item) if field.name not in ("id", "value")}
_has_no_options = uses_only(Item, "id", "value", "if_ready", "if_leased")
_has_only_a_group = uses_only(Item, "id", "value", "if_ready", "if_leased", "group")


class FastCalls:
    """The calls of one schema."""

    def __init__(self, schema: str) -> None:
        self._put = function("fast_put", 6, schema)
        self._put_group = function("fast_put_group", 6, schema)
        self._claim = function("fast_claim", 11, schema)
        self._settle = function("fast_settle", 5, schema)
        self._return = function("fast_return", 6, schema)
        self._acquire = function("fast_acquire", 6, schema)
        self._share = function("fast_share", 9, schema)
        self._renew = function("fast_renew", 4, schema)
        self._release = function("fast_release", 4, schema)
        self._write = function("fast_write", 11, schema)
        self._read = function("fast_read", 2, schema)
        self._checkpoint = function("fast_checkpoint", 16, schema)
        self._repeatable: dict[type[Command[Any]], Callable[[Any, str, bool], Call | None]] = {
            Put: self._put_call,
            Claim: self._claim_call,
            Settle: self._settle_call,
        }
        self._single: dict[type[Command[Any]], Callable[[Any, str], Call]] = {
            Acquire: self._acquire_call,
            Renew: lambda command, _: self._renew.call(*named(command.names[0]), command.lease_s),
            Release: lambda command, command_id: self._release.call(command_id, *named(command.names[0])),
            Write: lambda command, command_id: self._write.call(command_id, command.dict, *parts_of(command.changes[0])),
            Read: lambda command, _: self._read.call(command.dict, list(command.keys)),
            Together: self._checkpoint_call,
        }

    def call(self, command: Command[Any], command_id: str, *, again: bool) -> Call | None:
        """The call that answers the command, where a fast function may."""
        kind = type(command)
        if kind in self._repeatable:
            return self._repeatable[kind](command, command_id, again) if command.plain(*_also(command)) else None
        # What was perhaps made before is answered by the general function, which looks for the answer. So is what its caller named:
        # a single command that changes nothing writes no event which a second of its id would meet, and would be carried out again.
        is_first = command.reads_only or not (again or command.id)
        is_fast = is_first and kind in self._single and command.plain(*ALSO.get(kind, ()))
        return self._single[kind](command, command_id) if is_fast else None

    def _put_call(self, command: Put, command_id: str, again: bool) -> Call:  # noqa: FBT001 - as `call` says
        items = command.items
        if len(items) == 1 and items[0].group is not None and _has_only_a_group(items[0]):
            (item,) = items
            return self._put_group.call(command_id, again, command.queue, item.id, bytes(item.value).decode(), item.group)
        ids, texts = as_array(item.id for item in items), as_array(bytes(item.value).decode() for item in items)
        return self._put.call(command_id, again, command.queue, ids, texts, options_of(items))

    def _claim_call(self, command: Claim, command_id: str, again: bool) -> Call:  # noqa: FBT001 - as `call` says
        rest = (command.take, command.expired_to, command.max_attempts, command.dead_letter)
        return self._claim.call(command_id, again, command.queue, command.holder, command.lease_s, command.by_policy, command.limit, *rest)

    def _settle_call(self, command: Settle, command_id: str, again: bool) -> Call | None:  # noqa: FBT001 - as `call` says
        if command.to == "dead" or command.all_or_none:
            return None
        receipts = command.receipts
        ids, tokens = as_array(receipt.id for receipt in receipts), as_array(str(receipt.token) for receipt in receipts)
        claims = (command_id, again, receipts[0].queue, ids, tokens)
        if command.to == "done":
            return self._settle.call(*claims)
        return self._return.call(*claims, encode_command(with_fields(command, id="", receipts=())).decode())

    def _acquire_call(self, command: Acquire, command_id: str) -> Call:
        if command.capacity is not None:
            asked = (command.key, command.holder, command.lease_id, command.lease_s)
            return self._share.call(command_id, *asked, command.capacity, command.weight, command.in_line_s, command.max_waiters)
        return self._acquire.call(command_id, command.dict or "", command.key, command.holder, command.lease_id, command.lease_s)

    def _checkpoint_call(self, command: Together, command_id: str) -> Call:
        extend, write = command.commands
        assert isinstance(extend, Extend)  # noqa: S101 - a plain step is one of these two
        assert isinstance(write, Write)  # noqa: S101
        (receipt,) = extend.receipts
        claim = (receipt.queue, receipt.id, receipt.token, extend.lease_s, extend.progress)
        return self._checkpoint.call(command_id, *claim, write.dict, *parts_of(write.changes[0]))


def _also(command: Command[Any]) -> tuple[str, ...]:
    if isinstance(command, Put):
        # Not of several messages: two puts could wait for each other's keys.
        return ("group", "key") if len(command.items) == 1 else ("group",)
    return ALSO.get(type(command), ())


def options_of(items: Sequence[Item]) -> str | None:
    """The options of each item as a JSON array, None where no item has any."""
    return None if all(map(_has_no_options, items)) else json.encode([item_options(item) for item in items]).decode()


def item_options(item: Item) -> dict[str, Any]:
    """What the item says besides its id and value, where that is not as by default."""
    options = {name: value for name, default in OPTIONS.items() if (value := getattr(item, name)) != default}
    if item.metadata is not None:
        options["metadata"] = text_of(item.metadata)
    return options


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
