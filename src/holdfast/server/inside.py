"""Commands as the store gets them: every name in them becomes one of the caller's namespace."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from holdfast.commands import (
    Acquire,
    BeginImport,
    Browse,
    Changes,
    Claim,
    Clear,
    Command,
    Configure,
    Count,
    EndImport,
    Extend,
    Fences,
    Import,
    LeaseName,
    Length,
    Look,
    Move,
    Names,
    Prune,
    Put,
    Read,
    Release,
    Renew,
    Seal,
    Settle,
    Survey,
    Together,
    Write,
)
from holdfast.errors import NotAllowed
from holdfast.records import Receipt
from holdfast.server.namespaces import LAST_RESERVED, Namespace


def inside(command: Command[Any], namespace: Namespace) -> Command[Any]:
    """The same command in the namespace. In the default one names stand as they are, but that no list shows the others'."""
    if namespace.prefix:
        return _INSIDE[type(command)](command, namespace)
    if isinstance(command, Names):
        return replace(command, after=max(command.after or "", LAST_RESERVED))
    if isinstance(command, Together):
        return replace(command, commands=[inside(step, namespace) for step in command.commands])
    return command


def _maybe(name: str | None, namespace: Namespace) -> str | None:
    return None if name is None else namespace.inside(name)


def _put(command: Put, namespace: Namespace) -> Put:
    items = [i if i.dead_letter is None else replace(i, dead_letter=namespace.inside(i.dead_letter)) for i in command.items]
    return replace(command, queue=namespace.inside(command.queue), items=items)


def _claim(command: Claim, namespace: Namespace) -> Claim:
    return replace(command, queue=namespace.inside(command.queue), dead_letter=_maybe(command.dead_letter, namespace))


def _receipts(command: Extend | Settle, namespace: Namespace) -> list[Receipt]:
    return [replace(receipt, queue=namespace.inside(receipt.queue)) for receipt in command.receipts]


def _extend(command: Extend, namespace: Namespace) -> Extend:
    return replace(command, receipts=_receipts(command, namespace))


def _settle(command: Settle, namespace: Namespace) -> Settle:
    return replace(command, receipts=_receipts(command, namespace), dead_letter=_maybe(command.dead_letter, namespace))


def _move(command: Move, namespace: Namespace) -> Move:
    return replace(command, queue=namespace.inside(command.queue), to_queue=_maybe(command.to_queue, namespace))


def _queue(command: Browse | Count, namespace: Namespace) -> Command[Any]:
    return replace(command, queue=namespace.inside(command.queue))


def _dict(command: Read | Length | Write, namespace: Namespace) -> Command[Any]:
    return replace(command, dict=namespace.inside(command.dict))


def _acquire(command: Acquire, namespace: Namespace) -> Acquire:
    if command.dict is None:
        return replace(command, key=namespace.inside_key(command.key))
    return replace(command, dict=namespace.inside(command.dict))


def _lease_name(name: LeaseName, namespace: Namespace) -> LeaseName:
    if name.dict is None:
        return replace(name, key=namespace.inside_key(name.key))
    return replace(name, dict=namespace.inside(name.dict))


def _names(command: Renew | Release, namespace: Namespace) -> Command[Any]:
    return replace(command, names=[_lease_name(name, namespace) for name in command.names])


def _look(command: Look, namespace: Namespace) -> Look:
    if command.dict is None:
        return replace(command, keys=[namespace.inside_key(key) for key in command.keys])
    return replace(command, dict=namespace.inside(command.dict))


def _whole(command: Configure | Clear, namespace: Namespace) -> Command[Any]:
    return replace(command, name=namespace.inside(command.name))


def _list(command: Names, namespace: Namespace) -> Names:
    return replace(
        command, prefix=namespace.prefix + command.prefix, after=None if command.after is None else namespace.prefix + command.after
    )


def _changes(command: Changes, namespace: Namespace) -> Changes:
    return replace(command, topic=namespace.topic_inside(command.topic))


def _prune(command: Prune, namespace: Namespace) -> Prune:
    del namespace
    return command


def _refuse(command: Command[Any], namespace: Namespace) -> Command[Any]:
    raise NotAllowed(f"{type(command).__name__} is about the whole store, and {namespace.name} is a part of it: copy the store itself")


def _together(command: Together, namespace: Namespace) -> Together:
    return replace(command, commands=[inside(step, namespace) for step in command.commands])


_INSIDE: Final[dict[type[Command[Any]], Callable[[Any, Namespace], Command[Any]]]] = {
    Put: _put,
    Claim: _claim,
    Extend: _extend,
    Settle: _settle,
    Move: _move,
    Browse: _queue,
    Count: _queue,
    Read: _dict,
    Length: _dict,
    Write: _dict,
    Acquire: _acquire,
    Renew: _names,
    Release: _names,
    Look: _look,
    Configure: _whole,
    Clear: _whole,
    Names: _list,
    Changes: _changes,
    Prune: _prune,
    Survey: _refuse,
    Fences: _refuse,
    BeginImport: _refuse,
    Import: _refuse,
    EndImport: _refuse,
    Seal: _refuse,
    Together: _together,
}
