"""Every error crosses the wire and comes out the same."""

import inspect
from typing import Any

import pytest
from msgspec import json

from holdfast import errors
from holdfast.records import Lease, Receipt
from holdfast.stores.http.problems import KINDS, WIRE_CODES, Problem, WireError, decode_problem, encode_problem, error_of, problem_of

LEASE = Lease("d", "k", "ann", "id", 7, 1, 2)
SAMPLES: list[Exception] = [
    errors.ClaimLost("lost", [Receipt("jobs", "a", 3)]),
    errors.LeaseHeld("held", LEASE, 1.5),
    errors.LeaseHeld("held by nobody known"),
    errors.Refused("no", 2),
    errors.Compacted("gone", 9),
    errors.StoreMoved("moved", "sqlite:///new"),
    *(kind.error("because") for kind in KINDS.values() if kind.make is None),
]

OF_FLOWS: set[type[Exception]] = {
    errors.JobFailed,
    errors.ChildFailed,
    errors.StepsChanged,
    errors.StepFailed,
    errors.StepTooLarge,
    errors.JobTooLong,
    errors.JobCancelled,
    errors.ResultMissing,
    errors.ResultNotKept,
    errors.TimeLimitExceeded,
    errors.WorkerStopping,
    errors.ExecutionUnknown,
    errors.ExecutionRunning,
}
"""What workers raise on this side of the wire, and no store does."""


def told(error: Exception) -> tuple[type, tuple[Any, ...], dict[str, Any]]:
    return type(error), error.args, vars(error)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_comes_out_as_it_went_in(error: Exception) -> None:
    problem = problem_of(error)
    assert problem is not None
    assert told(error_of(decode_problem(encode_problem(problem)))) == told(error)


def test_every_error_that_a_store_raises_has_one_code() -> None:
    tree = {error for _, error in inspect.getmembers(errors, inspect.isclass) if issubclass(error, errors.HoldfastError)}
    kinds = [kind.error for kind in KINDS.values()]
    assert set(kinds) == tree - OF_FLOWS | {ValueError, TypeError}
    assert len(kinds) == len(set(kinds))
    assert not KINDS.keys() & WIRE_CODES.keys()


def test_a_kind_of_error_that_has_no_code_travels_as_the_kind_it_belongs_to() -> None:
    class FullOfCats(errors.QueueFull):
        pass

    problem = problem_of(FullOfCats("meow"))
    assert problem is not None
    assert problem.code == "queue_full"


def test_what_nobody_foresaw_does_not_travel() -> None:
    assert problem_of(ZeroDivisionError("secret")) is None


@pytest.mark.parametrize("code", WIRE_CODES)
def test_what_only_the_wire_says_is_raised_as_its_nearest_error(code: str) -> None:
    problem = WireError(code, 400, "because").problem
    assert told(error_of(problem)) == (WIRE_CODES[code], ("because",), {})


def test_a_code_of_a_newer_server_is_an_error_of_the_store() -> None:
    assert isinstance(error_of(Problem("brand_new", 418, "because")), errors.StoreError)


def test_the_body_is_plain_problem_json() -> None:
    problem = problem_of(errors.Compacted("gone", 9))
    assert problem is not None
    assert json.decode(encode_problem(problem)) == {
        "code": "compacted",
        "status": 410,
        "title": "Compacted",
        "detail": "gone",
        "fields": {"oldest": 9},
    }
