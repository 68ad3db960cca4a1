"""What becomes of a handler's result, and how it is committed with the acknowledgement."""

from dataclasses import dataclass
from typing import Protocol

from holdfast.surfaces.localqueue.policies.base import PER_POLICY, Described, Policy
from holdfast.surfaces.localqueue.results import ResultStore

__all__ = [
    "LOCAL_ATOMIC_COMMIT",
    "NO_RESULT_POLICY",
    "RETURN_STORED_RESULT",
    "TWO_PHASE_COMMIT",
    "CommitPolicy",
    "LocalAtomicCommit",
    "NoResultPolicy",
    "ResultPolicy",
    "ReturnStoredResult",
    "SagaCommit",
    "TransactionalOutboxCommit",
    "TwoPhaseCommit",
]


@dataclass(frozen=True)
class ResultPolicy(Described):
    """Whether a result is kept, and given back to a duplicate."""

    stores_result: bool
    returns_cached_result: bool


@dataclass(frozen=True)
class NoResultPolicy(ResultPolicy, kind={"type": "none"}):
    """It is not: a duplicate gets None."""

    stores_result: bool = False
    returns_cached_result: bool = False


@dataclass(frozen=True)
class ReturnStoredResult(ResultPolicy, kind={"type": "return-stored"}):
    """It is: in the ledger, or with `result_store` there, with only its key in the ledger."""

    stores_result: bool = True
    returns_cached_result: bool = True
    result_store: ResultStore | None = None


class CommitPolicy(Policy, Protocol):
    """How a result, the acknowledgement and effects elsewhere are brought together."""

    @property
    def mode(self) -> str: ...
    @property
    def local_commit(self) -> bool: ...
    @property
    def coordinates_effects(self) -> bool: ...


@dataclass(frozen=True)
class Commit(Described):
    """The values of a commit policy."""

    mode: str = PER_POLICY
    local_commit: bool = PER_POLICY
    coordinates_effects: bool = PER_POLICY


@dataclass(frozen=True)
class LocalAtomicCommit(Commit, values=("local-atomic", True, False)):
    """Ledger, result and acknowledgement in one atomic step, where all of them are in one store."""


@dataclass(frozen=True)
class TransactionalOutboxCommit(Commit, values=("transactional-outbox", True, True)):
    """An envelope in `outbox_store` in the same step; the relay delivers it."""

    outbox_store: ResultStore | None = None


@dataclass(frozen=True)
class TwoPhaseCommit(Commit, values=("two-phase", False, True)):
    """A `prepare` envelope in the same step, then a `commit` envelope; the relay commits what was left prepared."""

    prepare_store: ResultStore | None = None
    commit_store: ResultStore | None = None


@dataclass(frozen=True)
class SagaCommit(Commit, values=("saga", False, True)):
    """A `forward` envelope with the acknowledgement, a `compensate` one with a failure, which the relay hands on to be undone."""

    saga_store: ResultStore | None = None


NO_RESULT_POLICY = NoResultPolicy()
RETURN_STORED_RESULT = ReturnStoredResult()
LOCAL_ATOMIC_COMMIT = LocalAtomicCommit()
TWO_PHASE_COMMIT = TwoPhaseCommit()
