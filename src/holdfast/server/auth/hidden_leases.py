"""Hides lease ids from other callers, since an id is enough to renew and release a lease."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from holdfast.commands import Acquire, Acquired, Break, Broken, Command, Leases, Listed, Look, Looked, Together
from holdfast.errors import LeaseHeld


def hide_ids(command: Command[Any], answer: Any) -> Any:
    """The answer without the ids of leases that the command did not bring itself."""
    hide = _HIDE.get(type(command))
    return answer if hide is None else hide(command, answer)


def hide_ids_in_error(error: Exception) -> None:
    """Let the error not tell the id of the lease that was in the way."""
    if isinstance(error, LeaseHeld) and error.lease is not None:
        error.lease = error.lease.without_id()
        error.holders = [lease.without_id() for lease in error.holders]


def _acquired(command: Acquire, answer: Acquired) -> Acquired:
    return answer if answer.lease.lease_id == command.lease_id else _hidden(answer)


def _looked(command: Look, answer: Looked) -> Looked:
    del command
    return replace(answer, leases=[None if found is None else _hidden(found) for found in answer.leases])


def _listed(command: Leases, answer: Listed) -> Listed:
    del command
    held = [replace(one, leases=[lease.without_id() for lease in one.leases]) for one in answer.held]
    return replace(answer, held=held)


def _broken(command: Break, answer: Broken) -> Broken:
    del command
    return replace(answer, leases=[lease.without_id() for lease in answer.leases])


def _hidden(answer: Acquired) -> Acquired:
    return replace(answer, lease=answer.lease.without_id(), holders=[lease.without_id() for lease in answer.holders])


def _together(command: Together, answers: list[Any]) -> list[Any]:
    return [hide_ids(step, answer) for step, answer in zip(command.commands, answers, strict=True)]


_HIDE: Final[dict[type[Command[Any]], Callable[[Any, Any], Any]]] = {
    Acquire: _acquired,
    Look: _looked,
    Leases: _listed,
    Break: _broken,
    Together: _together,
}
