"""What becomes of a handler's result, and how it is committed with the acknowledgement."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from holdfast.surfaces.localqueue.described import Described
from holdfast.surfaces.localqueue.results import ResultStore


@dataclass(frozen=True, slots=True)
class ResultPolicy(Described):
    """Whether a result is kept, and given back to a duplicate."""

    stores_result: bool
    returns_cached_result: bool


@dataclass(frozen=True, slots=True)
class NoResultPolicy(ResultPolicy):
    """It is not: a duplicate gets None."""

    kind: ClassVar[dict[str, object]] = {"type": "none"}

    stores_result: bool = False
    returns_cached_result: bool = False


@dataclass(frozen=True, slots=True)
class ReturnStoredResult(ResultPolicy):
    """It is: in the ledger, or with `result_store` there, with only its key in the ledger."""

    kind: ClassVar[dict[str, object]] = {"type": "return-stored"}

    stores_result: bool = True
    returns_cached_result: bool = True
    result_store: ResultStore | None = None


class CommitPolicy(Protocol):
    """How a result, the acknowledgement and effects elsewhere are brought together."""

    @property
    def mode(self) -> str: ...
    @property
    def local_commit(self) -> bool: ...
    @property
    def coordinates_effects(self) -> bool: ...
    def as_dict(self) -> dict[str, object]:
        """The policy as plain data."""
        ...


@dataclass(frozen=True, slots=True)
class LocalAtomicCommit(Described):
    """Ledger, result and acknowledgement in one atomic step, where all of them are in one store."""

    mode: str = "local-atomic"
    local_commit: bool = True
    coordinates_effects: bool = False


@dataclass(frozen=True, slots=True)
class TransactionalOutboxCommit(Described):
    """An envelope in `outbox_store` in the same step; the relay delivers it."""

    mode: str = "transactional-outbox"
    local_commit: bool = True
    coordinates_effects: bool = True
    outbox_store: ResultStore | None = None


@dataclass(frozen=True, slots=True)
class TwoPhaseCommit(Described):
    """A `prepare` envelope in the same step, then a `commit` envelope; the relay commits what was left prepared."""

    mode: str = "two-phase"
    local_commit: bool = False
    coordinates_effects: bool = True
    prepare_store: ResultStore | None = None
    commit_store: ResultStore | None = None


@dataclass(frozen=True, slots=True)
class SagaCommit(Described):
    """A `forward` envelope with the acknowledgement, a `compensate` one with a failure, which the relay hands to whoever undoes it."""

    mode: str = "saga"
    local_commit: bool = False
    coordinates_effects: bool = True
    saga_store: ResultStore | None = None


NO_RESULT_POLICY = NoResultPolicy()
RETURN_STORED_RESULT = ReturnStoredResult()
LOCAL_ATOMIC_COMMIT = LocalAtomicCommit()
TWO_PHASE_COMMIT = TwoPhaseCommit()
