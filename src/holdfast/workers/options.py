"""The options of a worker."""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from holdfast.arguments.options import refuse_unknown
from holdfast.arguments.where import Where
from holdfast.backoff import Backoff
from holdfast.codec import JSON, Codec, check_name, codec_for
from holdfast.codec.fields import HELD_S, MAX_ATTEMPTS, MAX_HOLD_S, RENEW_INTERVAL_S, Field, Flag, Seconds, Whole, check_fields
from holdfast.commands.argument_checks import RETURNS, check_budget, check_choice
from holdfast.holding.hold import this_process
from holdfast.records import ReturnTo
from holdfast.workers.execution import Kind
from holdfast.workers.handlers.definitions import name_of
from holdfast.workers.handlers.handler import Handler, Judge
from holdfast.workers.handlers.signatures import types_of
from holdfast.workers.running.breaker import Breaker

KINDS = ("threads", "tasks", "processes")

DAY_S = 86_400.0

RETRIES = Backoff(first_s=1.0, factor=2.0, most_s=300.0)


class WorkerOptions(TypedDict, total=False):
    """The options of a worker besides its function and its queue."""

    name: str
    """What people call it, by default the machine and the process; several workers may share a name."""
    execution: Kind
    """Where the function runs: `threads` (the default of sync functions), `tasks` (of async ones), or `processes`."""
    concurrency: int
    """How many jobs run at once, by default 1."""
    prefetch: int | None
    """How many messages to hold beyond those that run: much faster for short jobs, but a worker that dies burns an attempt of these too.

    None, the default, holds up to a hundred ahead while jobs are short, and gives back in a moment what cannot begin; 0 none ever.
    """
    lease_s: float
    """How long others must wait after this worker died, by default 60 seconds; a job may take as long as it likes."""
    renew_interval_s: float | None
    """How often the lease of a running job is renewed; None, the default, is a third of `lease_s`."""
    max_hold_s: float | None
    """How long a claim is renewed at most, by default for ever: a function that hangs then loses its message, and its stack is logged."""
    expired_to: ReturnTo
    """Where a message goes whose worker died: to its old `place` (the default), to the `back` or to the `front` of the queue."""
    max_attempts: int | None
    """After how many failures a message is dead, by default 3, for messages that say nothing themselves; None is no limit."""
    dead_letter_queue: str | None
    """The queue that dead messages are put into; None, the default, keeps them as dead letters of their own queue."""
    backoff: Backoff
    """How long a message waits, in the store, before it is tried again: by default 1 second, then twice as long each time, up to 300."""
    soft_limit_s: float | None
    """When a job is told to end, by default never: a task is cancelled, a process interrupted; a thread is told by its `job` alone."""
    hard_limit_s: float | None
    """When a job has failed, whatever it does, by default never: a process is killed, a thread replaced and left to itself."""
    min_interval_s: float
    """How far apart jobs begin at least, by default 0 seconds."""
    breaker: Breaker | None
    """When to pause because jobs fail one after the other, by default never."""
    results: bool
    """Whether to keep what the function returns, for `Job.result`; by default False."""
    keep_result_s: float | None
    """How long a result, and a report of progress, is kept, by default a day; None is for ever."""
    idempotent: bool
    """Whether the effects of a job must not happen twice, by default False: see `Once` for what that promises."""
    idempotency_key: Callable[[Any], Hashable] | None
    """Gives for a value the key under which its effects are remembered, by default the id of the message."""
    remember_s: float | None
    """How long it is remembered that a job was done, by default a week; None is for ever."""
    reconcile: Callable[..., Any] | None
    """Called like the function when an execution died: it returns the result if the effects happened, and `MISSING` if not."""
    judge: Judge | None
    """Called with an exception and the job: it may return a `Snooze`, a `Retry`, a `Bury`, or None to leave it as it is."""
    grace_s: float
    """How long jobs may go on when the worker is told to stop, by default 30 seconds."""
    heartbeat_s: float | None
    """How often the worker shows in the registry that it lives, by default every 10 seconds; None keeps it out of it."""
    poll_interval_s: float
    """How often to look for jobs although no wake-up came, by default every second: the most that a missed wake-up can cost."""
    schedules: bool
    """Whether the worker puts the runs of schedules that are due, of any queue of its store; by default True."""
    type: Any
    """The type of the values: a dataclass, a msgspec Struct, a pydantic model, or a generic of those.

    By default it is the annotation of the function's first parameter where that is such a class, else plain data.
    """
    codec: Codec
    """How values are encoded, instead of by `type`."""
    result_codec: Codec
    """How results are encoded; by default by the annotation of what the function returns where that is such a class, else as plain data."""


CHECKED: Final[tuple[Field, ...]] = (
    Whole("concurrency", 1, 2**31 - 1),
    Whole("prefetch", 0, 2**31 - 1, optional=True),
    MAX_ATTEMPTS,
    HELD_S,
    Seconds("poll_interval_s", zero=False),
    Seconds("min_interval_s"),
    Seconds("grace_s"),
    RENEW_INTERVAL_S,
    MAX_HOLD_S,
    *(Seconds(name, zero=False, optional=True) for name in ("soft_limit_s", "hard_limit_s", "keep_result_s", "remember_s", "heartbeat_s")),
    Flag("results"),
    Flag("idempotent"),
    Flag("schedules"),
)


class Orders(Struct, frozen=True, kw_only=True):
    """The options of a worker, checked; `WorkerOptions` explains them."""

    queue: str
    handler: Handler
    name: str
    execution: Kind
    concurrency: int = 1
    prefetch: int | None = None
    lease_s: float = 60.0
    renew_interval_s: float | None = None
    max_hold_s: float | None = None
    expired_to: ReturnTo = "place"
    max_attempts: int | None = 3
    dead_letter_queue: str | None = None
    backoff: Backoff = RETRIES
    soft_limit_s: float | None = None
    hard_limit_s: float | None = None
    min_interval_s: float = 0.0
    breaker: Breaker | None = None
    results: bool = False
    keep_result_s: float | None = DAY_S
    idempotent: bool = False
    idempotency_key: Callable[[Any], Hashable] | None = None
    remember_s: float | None = 7 * DAY_S
    reconcile: Callable[..., Any] | None = None
    judge: Judge | None = None
    grace_s: float = 30.0
    heartbeat_s: float | None = 10.0
    poll_interval_s: float = 1.0
    schedules: bool = True
    codec: Codec = JSON
    result_codec: Codec = JSON

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        check_name(self.name, "worker")
        check_choice(self.execution, KINDS, "execution")
        check_choice(self.expired_to, RETURNS, "expired_to")
        check_budget(self.max_attempts, self.dead_letter_queue)
        check_fields(self, CHECKED)
        if self.prefetch and self.idempotent:
            raise ValueError("prefetch= with idempotent=True: if the worker died, it would be unknown which of them it had begun")
        if self.dead_letter_queue == self.queue:
            raise ValueError(f"queue {self.queue!r} cannot be its own dead-letter queue: name another")
        if self.execution == ("threads" if self.handler.is_async else "tasks"):
            raise ValueError(_mismatch(self.handler, self.execution))
        if self.reconcile is not None and not self.idempotent:
            raise ValueError("reconcile= determines the outcome of an execution that died; it needs idempotent=True")

    @property
    def summary(self) -> str:
        """What it does, for the log."""
        return f"{name_of(self.handler.function)} for queue {self.queue!r}, {self.concurrency} at once in {self.execution},"

    @property
    def ahead(self) -> int | None:
        """How many messages to hold ahead; None if that is for the worker to choose."""
        must_not = self.idempotent or self.min_interval_s or self.breaker is not None or self.max_attempts == 1
        return 0 if self.prefetch is None and must_not else self.prefetch

    @property
    def results_dict(self) -> str:
        """Where results are kept, by the id of their message."""
        return results_of(self.queue)

    @property
    def progress_dict(self) -> str:
        """Where reports are kept, by the id of their message."""
        return progress_of(self.queue)

    @property
    def ledger(self) -> str:
        """Where it is remembered what was done."""
        return ledger_of(self.queue)


def results_of(queue: str) -> str:
    """The dict of a queue's results."""
    return f"{queue}-results"


def progress_of(queue: str) -> str:
    """The dict of a queue's reports."""
    return f"{queue}-progress"


def ledger_of(queue: str) -> str:
    """The dict that remembers which effects of a queue's jobs have happened."""
    return f"{queue}-once"


def make_orders(function: Callable[..., Any], queue: str, **options: Unpack[WorkerOptions]) -> Orders:
    """Fill in what suits the function where nothing was said."""
    handler = Handler(function)
    value_type, result_type = types_of(function)
    defaults: dict[str, Any] = {
        "name": this_process(),
        "execution": "tasks" if handler.is_async else "threads",
        "codec": codec_for(value_type, None),
        "result_codec": codec_for(result_type, None),
    }
    return Orders(queue=queue, handler=handler, **(defaults | _checked(handler, options)))


def change_orders(orders: Orders, **options: Unpack[WorkerOptions]) -> Orders:
    """The same orders but for these options."""
    return replace(orders, **_checked(orders.handler, options))


def _checked(handler: Handler, options: WorkerOptions) -> dict[str, Any]:
    """The options as fields of `Orders`; TypeError for one that does not exist."""
    refuse_unknown(f"the worker {handler.name}", options, {*WorkerOptions.__annotations__, *Where.__annotations__})
    fields: dict[str, Any] = dict(options)
    if (type_ := fields.pop("type", None)) is not None:
        fields["codec"] = codec_for(type_, fields.get("codec"))
    return fields


def _mismatch(handler: Handler, execution: Kind) -> str:
    kind, fit = ("an async", "tasks") if handler.is_async else ("a sync", "threads")
    return f"{handler.name} is {kind} function and cannot run in {execution}: use {fit} or processes"
