"""Errors as problem+json (RFC 9457), with a stable code for each exception."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, convert, json, to_builtins

from holdfast import errors
from holdfast.records import Lease, Receipt

CONTENT_TYPE: Final = "application/problem+json"


class Problem(Struct, frozen=True, omit_defaults=True):
    """The body of an answer that is an error; `code` is what programs look at, `detail` what people read."""

    code: str
    status: int
    detail: str
    title: str = ""
    fields: dict[str, Any] = {}
    """What the error carries beside its sentence."""


class Kind(Struct, frozen=True):
    """How one class of errors travels."""

    error: type[Exception]
    status: int
    fields: tuple[str, ...] = ()
    make: Callable[[str, dict[str, Any]], Exception] | None = None

    def problem(self, code: str, error: Exception) -> Problem:
        fields = {name: to_builtins(getattr(error, name)) for name in self.fields}
        return Problem(code, self.status, str(error), code.replace("_", " ").capitalize(), fields)

    def rebuild(self, detail: str, fields: dict[str, Any]) -> Exception:
        return self.error(detail) if self.make is None else self.make(detail, fields)


def _claim_lost(detail: str, fields: dict[str, Any]) -> Exception:
    return errors.ClaimLost(detail, convert(fields.get("lost", []), list[Receipt]))


def _held(kind: type[errors.LeaseHeld]) -> "Callable[[str, dict[str, Any]], Exception]":
    def rebuild(detail: str, fields: dict[str, Any]) -> Exception:
        lease, expires_in_s = convert(fields.get("lease"), Lease | None), convert(fields.get("expires_in_s"), float | None)
        return kind(detail, lease, expires_in_s, convert(fields.get("holders", []), list[Lease]))

    return rebuild


KINDS: Final = {
    "claim_lost": Kind(errors.ClaimLost, 409, ("lost",), _claim_lost),
    "lease_lost": Kind(errors.LeaseLost, 409),
    "lease_held": Kind(errors.LeaseHeld, 409, ("lease", "expires_in_s", "holders"), _held(errors.LeaseHeld)),
    "line_full": Kind(errors.LineFull, 409, ("lease", "expires_in_s", "holders"), _held(errors.LineFull)),
    "lock_timeout": Kind(errors.LockTimeout, 408),
    "took_too_long": Kind(errors.TookTooLong, 408),
    "queue_full": Kind(errors.QueueFull, 409),
    "key_in_flight": Kind(errors.KeyInFlight, 409),
    "refused": Kind(errors.Refused, 409, ("step",), lambda detail, fields: errors.Refused(detail, fields.get("step"))),
    "id_taken": Kind(errors.IdTaken, 409, ("step",), lambda detail, fields: errors.IdTaken(detail, fields.get("step"))),
    "rate_limited": Kind(
        errors.RateLimited, 409, ("due_in_s",), lambda detail, fields: errors.RateLimited(detail, fields.get("due_in_s", 0.0))
    ),
    "job_gone": Kind(errors.JobGone, 404),
    "schedule_missing": Kind(errors.ScheduleMissing, 404),
    "compacted": Kind(errors.Compacted, 410, ("oldest",), lambda detail, fields: errors.Compacted(detail, fields.get("oldest", 0))),
    "closed": Kind(errors.Closed, 503),
    "not_allowed": Kind(errors.NotAllowed, 403),
    "store_moved": Kind(errors.StoreMoved, 410, ("url",), lambda detail, fields: errors.StoreMoved(detail, fields.get("url", ""))),
    "store_unavailable": Kind(errors.StoreUnavailable, 503),
    "outcome_unknown": Kind(errors.OutcomeUnknown, 504),
    "store_error": Kind(errors.StoreError, 500),
    "store_full": Kind(errors.StoreFull, 507),
    "store_corrupted": Kind(errors.StoreCorrupted, 500),
    "store_missing": Kind(errors.StoreMissing, 500),
    "missing_extra": Kind(errors.MissingExtra, 500),
    "schema_too_new": Kind(errors.SchemaTooNew, 500),
    "holdfast_error": Kind(errors.HoldfastError, 500),
    "bad_value": Kind(ValueError, 422),
    "bad_type": Kind(TypeError, 422),
}
"""Every error of the tree, and the two for bad arguments, by its code."""

WIRE_CODES: Final = {
    "not_signed_in": errors.NotAllowed,
    "wrong_host": errors.NotAllowed,
    "cross_origin": errors.NotAllowed,
    "over_quota": errors.StoreFull,
    "too_many_failures": errors.NotAllowed,
    "no_such_route": errors.StoreError,
    "wrong_method": errors.StoreError,
    "wrong_content_type": ValueError,
    "too_large": ValueError,
    "too_deep": ValueError,
    "too_slow": errors.StoreUnavailable,
    "not_json": ValueError,
    "too_many_requests": errors.StoreUnavailable,
    "shutting_down": errors.StoreUnavailable,
    "internal": errors.StoreError,
}
"""What only a wire can say, and what the client raises for it."""

_codes = {kind.error: code for code, kind in KINDS.items()}


class WireError(Exception):
    """An error of the wire itself, by its code; `headers` go with the answer."""

    def __init__(self, code: str, status: int, detail: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(detail)
        self.problem: Problem = Problem(code, status, detail, code.replace("_", " ").capitalize())
        self.headers = headers


def problem_of(error: Exception) -> Problem | None:
    """How the error travels; None for one that must not leave the server."""
    for kind in type(error).__mro__:
        if (code := _codes.get(kind)) is not None:
            return KINDS[code].problem(code, error)
    return None


def error_of(problem: Problem) -> Exception:
    """The error that the problem describes."""
    kind = KINDS.get(problem.code)
    if kind is not None:
        return kind.rebuild(problem.detail, problem.fields)
    return WIRE_CODES.get(problem.code, errors.StoreError)(problem.detail)


encode_problem: Callable[[Problem], bytes] = json.Encoder().encode
decode_problem: Callable[[bytes], Problem] = json.Decoder(Problem).decode
