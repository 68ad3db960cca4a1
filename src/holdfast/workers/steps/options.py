"""The options of a step."""

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypedDict, get_type_hints

from msgspec import Struct

from holdfast.backoff import Backoff
from holdfast.codec import JSON, Codec, codec_for
from holdfast.codec.fields import check_fields
from holdfast.codec.limits import shown
from holdfast.codec.object_fields import Instance
from holdfast.workers.handlers.signatures import declared
from holdfast.workers.steps.rows import hash_of

MAX_ATTEMPTS = 3

RETRIES = Backoff(first_s=1.0, factor=2.0, most_s=300.0)
"""How long a step, or a job, waits before it is tried again."""

CHECKED = (Instance("backoff", Backoff),)


class StepOptions(TypedDict, total=False):
    """The options of a step, for `JobContext.options`."""

    once: bool
    """Whether the step must not be done twice, by default False: it is recorded before it begins, and not begun again by itself."""
    reconcile: Callable[..., Any] | None
    """Called like the step when a run died in it: it returns the result if the effect happened, and `MISSING` if not."""
    max_attempts: int
    """After how many failures the step has failed for good, by default 3."""
    backoff: Backoff
    """How long to wait before it is tried again: by default 1 second, then twice as long each time, up to 300."""
    timeout_s: float | None
    """How long one try of it may take, by default for ever; only in async functions."""
    type: Any
    """The type of its result; by default as the function is annotated where that is a declared class, else plain data."""
    connection: Any
    """A connection of yours to the same database: the record is committed with your transaction, or not at all. What the function raises is
    then for you to handle, as you roll back; so it goes with none of `once`, `reconcile`, `max_attempts` and `backoff`."""


class StepRules(Struct, frozen=True):
    """How a step is done; `StepOptions` explains it."""

    once: bool = False
    reconcile: Callable[..., Any] | None = None
    max_attempts: int = MAX_ATTEMPTS
    backoff: Backoff = RETRIES
    timeout_s: float | None = None
    type: Any = None
    connection: Any = None

    def __post_init__(self) -> None:
        check_fields(self, CHECKED)
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int) or self.max_attempts < 1:
            raise ValueError(f"max_attempts must be 1 or more, not {self.max_attempts!r}")
        if self.reconcile is not None and not self.once:
            raise ValueError("reconcile= determines the outcome of a step that died; it needs once=True")
        if self.connection is not None and (self.once or self.max_attempts != MAX_ATTEMPTS or self.backoff != RETRIES):
            raise ValueError(
                "connection= does not go with once=, reconcile=, max_attempts= or backoff=: a transaction that is rolled back keeps no "
                "record that the step began or failed, and in yours it happens once anyway. Put an effect outside of your database into "
                "a step of its own, without connection="
            )

    def codec(self, function: Callable[..., Any]) -> Codec:
        """How the result of a step is encoded if the task has no codec of the user's."""
        if self.type is not None:
            return codec_for(self.type, None)
        try:
            return _codec_of(function)
        except TypeError:  # It cannot be hashed.
            return JSON


class StepCall(Struct, frozen=True):
    """One call of a step."""

    branch: str
    name: str
    rules: StepRules
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"step {self.name!r} calls a function, not {shown(self.function)}: give the function, then its arguments")

    def codec(self, given: Codec | None) -> Codec:
        """How its result is encoded, given the user's codec of the task; moments, ids and numbers of the library are no secrets."""
        return self.rules.codec(self.function) if given is None or self.name.startswith("~") else given

    @property
    def hashed(self) -> str:
        """The hash of its arguments."""
        return hash_of(self.args, self.kwargs)


@lru_cache(maxsize=1_000)
def _codec_of(function: Callable[..., Any]) -> Codec:
    try:
        hints = get_type_hints(function if inspect.isroutine(function) else type(function).__call__)
    except Exception:  # noqa: BLE001 - a name that is not known where the function was defined; then nothing is known
        return JSON
    return codec_for(declared(hints.get("return")), None)
