"""Maps errors of PostgreSQL to Holdfast's own: refusals, errors worth a retry, and permanent ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
from msgspec import convert, json
from psycopg import errors

from holdfast.commands import refusal_errors
from holdfast.commands.request import current, took_too_long
from holdfast.errors import HoldfastError, NotAllowed, StoreError, StoreFull, StoreUnavailable
from holdfast.records import Lease, Receipt
from holdfast.stores.retrying import Lost

UNDONE = (
    # Two commands met in a way that one of them was undone for.
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.UniqueViolation,
    # Not now: too many connections, a server that starts or ends, a primary that became a standby.
    errors.TooManyConnections,
    errors.CannotConnectNow,
    errors.ReadOnlySqlTransaction,
)

REFUSED = "HF001"
"""The state of every refusal: its message names one of those below, and its detail has the facts as a JSON array."""


def _shares(lease: Any, ends_in_s: float | None, holders: Any) -> tuple[Lease, float | None, list[Lease]]:
    return convert(lease, Lease), ends_in_s, convert(holders, list[Lease])


REFUSALS: dict[str, Callable[..., HoldfastError]] = {
    "queue_full": refusal_errors.queue_full,
    "key_in_flight": lambda queue, key, held: refusal_errors.key_in_flight(queue, key, held=held),
    "key_is_recent": refusal_errors.key_is_recent,
    "id_taken": refusal_errors.id_taken,
    "claims_lost": lambda lost, of: refusal_errors.claims_lost(convert(lost, list[Receipt]), of),
    "lease_held": lambda lease, ends_in_s: refusal_errors.lease_held(convert(lease, Lease), ends_in_s),
    "shares_held": lambda key, lease, ends_in_s, holders: refusal_errors.shares_held(key, *_shares(lease, ends_in_s, holders)),
    "line_full": lambda key, waiting, *rest: refusal_errors.line_full(key, waiting, *_shares(*rest)),
    "other_capacity": refusal_errors.other_capacity,
    "plain_lease": lambda lease: refusal_errors.plain_lease(convert(lease, Lease)),
    "too_heavy": refusal_errors.too_heavy,
    "lease_in_transaction": lambda of, key, lease, ends_in_s: refusal_errors.lease_in_transaction(
        of, key, convert(lease, Lease | None), ends_in_s
    ),
    "lease_lost": refusal_errors.lease_lost,
    "not_written": refusal_errors.not_written,
    "no_rate": refusal_errors.no_rate,
    "no_number": refusal_errors.no_number,
    "out_of_range": refusal_errors.out_of_range,
    "fence_lost": refusal_errors.fence_lost,
    "fence_too_high": refusal_errors.fence_too_high,
    "compacted": refusal_errors.compacted,
    "answer_too_large": refusal_errors.answer_too_large,
    "not_empty": refusal_errors.not_empty,
    "other_copy": refusal_errors.other_copy,
    "no_copy": refusal_errors.no_copy,
    "other_place": refusal_errors.other_place,
    "both_have": refusal_errors.both_have,
    "written_meanwhile": refusal_errors.written_meanwhile,
    "policies_clash": refusal_errors.policies_clash,
    "too_many_messages": refusal_errors.too_many_messages,
}

UNDEFINED = (errors.UndefinedTable, errors.UndefinedObject)
"""What a store that was moved away meets: its tables, and the types of their rows, have other names."""

GONE = (errors.AdminShutdown, errors.CrashShutdown, errors.IdleSessionTimeout)
"""The server ended the connection, perhaps after the commit."""

LOST = (psycopg.OperationalError, psycopg.InterfaceError)
"""Without a state: libpq noticed it, not the server."""

AUTHENTICATION = ("authentication failed", "no password supplied", "no pg_hba.conf entry", "is not permitted to log in")


class Failure(NamedTuple):
    """What a driver reported."""

    kind: type[psycopg.Error]
    state: str
    message: str
    detail: str


def raised(error: psycopg.Error, where: str) -> HoldfastError | Lost | ValueError:
    """What to raise for an error that a statement met."""
    said = error.diag.message_primary or str(error)
    return meaning(Failure(type(error), error.sqlstate or "", said, error.diag.message_detail or ""), where)


def meaning(failure: Failure, where: str) -> HoldfastError | Lost | ValueError:
    """What to raise for a failure, whichever driver reported it."""
    kind, state, message, detail = failure
    if state == REFUSED:
        return REFUSALS[message](*json.decode(detail or "[]"))
    said = _sentences(message)
    if issubclass(kind, UNDONE):
        return Lost(f"{where}: {said}", maybe_applied=False)
    if issubclass(kind, GONE) or state.startswith("08") or (not state and issubclass(kind, LOST)):
        return Lost(f"{where}: the connection was lost ({said})", maybe_applied=True)
    if issubclass(kind, errors.QueryCanceled):
        return took_too_long(current.get().most_s)
    if issubclass(kind, errors.InsufficientPrivilege):
        return NotAllowed(f"{where}: {said}; give the user this right, or use another")
    if issubclass(kind, errors.UndefinedFunction):
        return StoreError(f"{where}: {said}; if the functions of this release were pruned, open the store again")
    if issubclass(kind, errors.DiskFull):
        return StoreFull(f"{where}: the server's disk is full; nothing was written")
    if issubclass(kind, errors.CharacterNotInRepertoire | errors.UntranslatableCharacter):
        return ValueError(f"PostgreSQL cannot store this text: {said}")
    return StoreError(f"{where}: {said} ({state})")


def not_connected(error: psycopg.Error, where: str) -> HoldfastError:
    """What to raise where no connection could be made at all; libpq never says the password."""
    said = _sentences(error.diag.message_primary or str(error))
    if any(phrase in said for phrase in AUTHENTICATION):
        return NotAllowed(f"{where}: {said}; check user and password")
    if "does not exist" in said:
        return StoreError(f"{where}: {said}; create it, or name another in the URL")
    return StoreUnavailable(f"{where} cannot be reached: {said}")


def refuse_if_moved(row: tuple[Any, ...] | None, where: str) -> None:
    """Raise `StoreMoved` where the store remembers a new URL."""
    if row is not None and row[0] is not None:
        raise refusal_errors.moved(where, row[0])


def _sentences(message: str) -> str:
    sentences = [sentence for line in message.splitlines() if (sentence := " ".join(line.split()))]
    # libpq ends its lines as it likes, and what follows one is another sentence.
    return " ".join(sentence if sentence.endswith((".", ":", "?", "!")) else f"{sentence}." for sentence in sentences).removesuffix(".")
