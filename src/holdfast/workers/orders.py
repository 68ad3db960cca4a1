"""What a worker was told, checked: how it works, and how the jobs of each of its functions are run."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Unpack

from msgspec import Struct
from msgspec.structs import replace

from holdfast.arguments.options import refuse_unknown
from holdfast.arguments.where import Where
from holdfast.backoff import Backoff
from holdfast.codec import JSON, Codec, check_name, codec_for
from holdfast.codec.call_fields import HELD_S, MAX_HOLD_S, RENEW_INTERVAL_S
from holdfast.codec.fields import MAX_ATTEMPTS, Field, Flag, Seconds, Whole, check_fields
from holdfast.codec.object_fields import Function, Instance
from holdfast.commands.argument_checks import RETURNS, check_budget, check_choice
from holdfast.holding.hold import this_process
from holdfast.rates import Rate
from holdfast.records import Message, ReturnTo
from holdfast.records.policies import Policy
from holdfast.schedules.entries import ScheduleEntry
from holdfast.wording import counted
from holdfast.workers.execution import Kind
from holdfast.workers.handlers.batches import BatchTerms
from holdfast.workers.handlers.definitions import name_of
from holdfast.workers.handlers.handler import Handler
from holdfast.workers.handlers.judgement import Judge
from holdfast.workers.handlers.outcomes import UNKNOWN_FOR_S
from holdfast.workers.handlers.resources import Around
from holdfast.workers.handlers.signatures import types_of
from holdfast.workers.handlers.task_names import UnknownHandler, named_in
from holdfast.workers.names import ledger_of, progress_of, results_of
from holdfast.workers.options import ConsumerOptions, ProcessOptions, WorkerOptions
from holdfast.workers.running.breaker import Breaker
from holdfast.workers.steps.options import RETRIES

__all__ = ["Options", "Orders", "Table", "change_orders", "ledger_of", "make_options", "make_orders", "progress_of", "results_of"]

KINDS = ("threads", "tasks", "processes")

DAY_S = 86_400.0

QUEUES_MOST = 32
"""How many queues a worker serves at most."""

CHECKED_OF_JOBS: Final[tuple[Field, ...]] = (
    MAX_ATTEMPTS,
    *(Seconds(name, zero=False, optional=True) for name in ("soft_limit_s", "hard_limit_s", "keep_result_s", "remember_s")),
    Whole("most", 1, 2**31 - 1, optional=True),
    *(Flag(name) for name in ("results", "tracebacks", "idempotent")),
    *(Instance("backoff", Backoff), Instance("rate", Rate, optional=True)),
    *(Function(name) for name in ("idempotency_key", "reconcile", "judge")),
)

CHECKED_OF_PROCESS: Final[tuple[Field, ...]] = (
    Whole("concurrency", 1, 2**31 - 1),
    Whole("prefetch", 0, 2**31 - 1, optional=True),
    HELD_S,
    Seconds("poll_interval_s", zero=False),
    Seconds("min_interval_s"),
    Seconds("grace_s"),
    RENEW_INTERVAL_S,
    MAX_HOLD_S,
    Seconds("heartbeat_s", zero=False, optional=True),
    Seconds("unknown_for_s", optional=True),
    *(Whole(name, 1, 2**31 - 1, optional=True) for name in ("max_jobs_per_child", "max_rss_mb")),
    Flag("schedules"),
    Instance("breaker", Breaker, optional=True),
)


class Options(Struct, frozen=True, kw_only=True):
    """How the jobs of one function are run; `JobOptions` explains it."""

    queue: str
    handler: Handler
    execution: Kind
    task: str = ""
    """The name of the task; empty for a function that takes whatever is put into its queue."""
    given: frozenset[str] = frozenset()
    """The options that the user gave: what was not given is as the queue's policy says, where that says it."""
    versions: tuple[Any, ...] = ()
    """The versions of the task whose jobs it accepts, besides those that name none."""
    max_attempts: int | None = 3
    dead_letter_queue: str | None = None
    backoff: Backoff = RETRIES
    soft_limit_s: float | None = None
    hard_limit_s: float | None = None
    results: bool = False
    keep_result_s: float | None = DAY_S
    tracebacks: bool = True
    idempotent: bool = False
    idempotency_key: Callable[..., Hashable] | None = None
    remember_s: float | None = 7 * DAY_S
    reconcile: Callable[..., Any] | None = None
    judge: Judge | None = None
    result_codec: Codec = JSON
    most: int | None = None
    rate: Rate | None = None
    batch: BatchTerms | None = None
    """If one call takes several jobs."""
    around: tuple[Around, ...] = ()
    """What is done around each job."""

    @property
    def key(self) -> str:
        """What names the function among those of a worker."""
        return self.task or f"queue {self.queue}"

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        check_choice(self.execution, KINDS, "execution")
        check_budget(self.max_attempts, self.dead_letter_queue)
        check_fields(self, CHECKED_OF_JOBS)
        if self.dead_letter_queue == self.queue:
            raise ValueError(f"queue {self.queue!r} cannot be its own dead-letter queue: name another")
        if self.execution == ("threads" if self.handler.is_async else "tasks"):
            raise ValueError(_mismatch(self.handler, self.execution))
        if self.batch is not None and (self.execution == "processes" or self.idempotent):
            raise ValueError("a batch runs in threads or tasks, and cannot be idempotent=True: one call has the effects of several jobs")
        if self.reconcile is not None and not self.idempotent:
            raise ValueError("reconcile= determines the outcome of an execution that died; it needs idempotent=True")

    def under(self, policy: Policy) -> "Options":
        """The same options in a queue with this policy."""
        found = {"max_attempts": policy.max_attempts, "dead_letter_queue": policy.dead_letter, "backoff": policy.backoff}
        fields = {name: value for name, value in found.items() if value is not None and name not in self.given}
        return replace(self, **fields) if fields else self

    @property
    def codecs(self) -> tuple[Codec, ...]:
        """The codecs of its values and results."""
        given = self.handler.given_codec
        return (self.result_codec,) if given is None else (given, self.result_codec)


class Table(Struct, frozen=True):
    """Which function runs a message: the task that its metadata names, else the consumer of its queue."""

    consumers: Mapping[str, Options] = {}
    """By queue."""
    tasks: Mapping[str, Options] = {}
    """By name, and by every other name that a task had before."""

    def find(self, message: Message) -> Options | None:
        """How to run a message; None if no function here is for it."""
        if message.metadata is None or (named := named_in(message.metadata)).task is None:
            return self.consumers.get(message.queue)
        options = self.tasks.get(named.task)
        return None if options is None or (named.v is not None and named.v not in options.versions) else options

    def unknown(self, queue: str) -> Options:
        """How to run a message that no function here is for: give it back."""
        kinds = {options.execution for options in self.all()}
        execution: Kind = "tasks" if kinds == {"tasks"} else "threads"
        return Options(queue=queue, handler=UnknownHandler(self.tasks, is_async=execution == "tasks"), execution=execution, task="?")

    @property
    def only_consumer(self) -> Options | None:
        """The one function of a table without tasks."""
        return None if self.tasks or len(self.consumers) != 1 else next(iter(self.consumers.values()))

    def all(self) -> list[Options]:
        """The options of every function, each once."""
        return [*self.consumers.values(), *{options.task: options for options in self.tasks.values()}.values()]

    @property
    def placed(self) -> list[Options]:
        """The functions that take batches, or may not run more than so often at once: there it is not enough to count jobs."""
        return [options for options in self.all() if options.batch is not None or options.most is not None]

    @property
    def rated(self) -> list[Options]:
        """The tasks that have a rate."""
        return [options for options in self.all() if options.rate is not None]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its tasks, also the earlier ones."""
        return tuple(sorted(self.tasks))


class Orders(Struct, frozen=True, kw_only=True):
    """How a worker works; `ProcessOptions` explains it."""

    queues: tuple[str, ...]
    """In order: while one has work, those after it wait."""
    table: Table
    name: str
    weights: Mapping[str, float] | None = None
    """The share of each queue, instead of an order."""
    concurrency: int = 1
    prefetch: int | None = None
    lease_s: float = 60.0
    by_policy: bool = False
    """Whether the queue's own `lease_s`, where it has one, counts instead."""
    renew_interval_s: float | None = None
    max_hold_s: float | None = None
    expired_to: ReturnTo = "place"
    min_interval_s: float = 0.0
    breaker: Breaker | None = None
    grace_s: float = 30.0
    heartbeat_s: float | None = 10.0
    poll_interval_s: float = 1.0
    unknown_for_s: float | None = UNKNOWN_FOR_S
    max_jobs_per_child: int | None = None
    max_rss_mb: int | None = None
    schedules: bool = True
    declared: Mapping[str, ScheduleEntry] = {}
    """The schedules that its code declares."""
    around: tuple[Around, ...] = ()
    """What is done once around all jobs of a process."""
    overrides: Mapping[Callable[[], Any], Any] = {}
    """What tests give instead of what factories make."""

    def __post_init__(self) -> None:
        check_queues(self.queues)
        check_name(self.name, "worker")
        check_choice(self.expired_to, RETURNS, "expired_to")
        check_fields(self, CHECKED_OF_PROCESS)
        if self.prefetch and any(options.idempotent for options in self.table.all()):
            raise ValueError("prefetch= with idempotent=True: if the worker died, it would be unknown which of them it had begun")
        if (self.max_jobs_per_child or self.max_rss_mb) and "processes" not in self.execution:
            raise ValueError("max_jobs_per_child= and max_rss_mb= replace child processes: they need a function with execution='processes'")
        if self.prefetch and (self.table.placed or self.table.rated):
            raise ValueError("prefetch= with most=, rate= or a batch: nothing is held ahead that may not begin, so leave it out")
        if len(self.queues) > 1 and self.prefetch:
            raise ValueError("prefetch= is for a worker of one queue: several queues share its concurrency, and nothing is held ahead")
        if len(self.queues) > 1 and self.min_interval_s:
            raise ValueError("min_interval_s= is for a worker of one queue: start one for that queue, or use a Limiter in its jobs")

    @property
    def summary(self) -> str:
        """What it does, for the log."""
        what = [name_of(one.handler.function) for queue, one in self.table.consumers.items() if queue in self.queues]
        if tasks := [options for options in self.table.all() if options.task]:
            what.append(tasks[0].task if len(tasks) == 1 else counted(len(tasks), "task"))
        return f"{' and '.join(what)} for {self._shown_queues()}, {self.concurrency} at once in {self.execution},"

    def _shown_queues(self) -> str:
        if len(self.queues) == 1:
            return f"queue {self.queues[0]!r}"
        if self.weights is None:
            return f"queues {', '.join(map(repr, self.queues))} in this order"
        return f"queues {', '.join(f'{queue!r} ({weight:g})' for queue, weight in self.weights.items())} by weight"

    @property
    def execution(self) -> str:
        """Where its functions run."""
        kinds = {options.execution for options in self.table.all()}
        return " and ".join(kind for kind in KINDS if kind in kinds)

    @property
    def ahead(self) -> int | None:
        """How many messages to hold ahead; None if that is for the worker to choose."""
        if len(self.queues) > 1:
            return 0
        must_not = any(options.idempotent or options.max_attempts == 1 for options in self.table.all())
        must_not = must_not or bool(self.min_interval_s) or self.breaker is not None or bool(self.table.placed or self.table.rated)
        return 0 if self.prefetch is None and must_not else self.prefetch

    def fallback(self, queue: str, policy: Policy) -> tuple[int | None, str | None]:
        """How many attempts messages of a queue have that say nothing themselves, and where their dead letters go."""
        consumer = self.table.consumers.get(queue)
        if consumer is None:
            return (3 if policy.max_attempts is None else policy.max_attempts), policy.dead_letter
        consumer = consumer.under(policy)
        return consumer.max_attempts, consumer.dead_letter_queue


def chosen_queues(
    given: Sequence[str] | Mapping[str, float] | None, own: Sequence[str]
) -> tuple[tuple[str, ...], Mapping[str, float] | None]:
    """The queues that a worker was told to serve, by default its own ones alike, and their weights if they are in no order."""
    if isinstance(given, str):
        raise TypeError(f"queues= is a list of queues, or a mapping with their weights: write queues=[{given!r}]")
    if given is None:
        if not own:
            raise ValueError("there is no task, and so no queue to work on: decorate a function with @app.task, or name queues=[…]")
        given = dict.fromkeys(own, 1.0)
    if not isinstance(given, Mapping):
        return tuple(given), None
    for queue, weight in given.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
            raise ValueError(f"the weight of queue {queue!r} must be a number more than 0, not {weight!r}")
    return tuple(given), given if len(given) > 1 else None


def check_queues(queues: Sequence[str]) -> None:
    """Refuse queues that one worker cannot serve."""
    for queue in queues:
        check_name(queue, "queue")
    if not queues or len(set(queues)) < len(queues):
        raise ValueError(f"queues= must name at least one queue, and each once, not {list(queues)}")
    if len(queues) > QUEUES_MOST:
        raise ValueError(
            f"a worker serves at most {QUEUES_MOST} queues, not {len(queues)}: each is asked on its own. Put the jobs into one queue, "
            "with a fair group for each"
        )


def make_options(function: Callable[..., Any], queue: str, **options: Unpack[ConsumerOptions]) -> Options:
    """Fill in what suits a function that takes the value, where nothing was said."""
    value_type, result_type = types_of(function)
    fields = _fields(options)
    handler = Handler(function, fields.pop("codec", None) or codec_for(value_type, None))
    defaults = {"execution": "tasks" if handler.is_async else "threads", "result_codec": codec_for(result_type, None)}
    return Options(queue=queue, handler=handler, given=frozenset(options), **(defaults | fields))


def make_orders(function: Callable[..., Any], queue: str, **options: Unpack[WorkerOptions]) -> Orders:
    """The orders of a worker with one function that takes whatever is put into its queue."""
    of_process, of_jobs = _divided(function, options)
    consumer = make_options(function, queue, **of_jobs)
    fields: dict[str, Any] = {"name": this_process(), "by_policy": "lease_s" not in of_process} | of_process
    return Orders(queues=(queue,), table=Table({queue: consumer}), **fields)


def change_orders(orders: Orders, **options: Unpack[WorkerOptions]) -> Orders:
    """The same orders but for these options; those of jobs are changed for the consumer of the queue."""
    (consumer,) = orders.table.consumers.values()
    of_process, of_jobs = _divided(consumer.handler.function, options)
    fields = _fields(of_jobs)
    if "codec" in fields:
        fields["handler"] = Handler(consumer.handler.function, fields.pop("codec"))
    consumer = replace(consumer, **fields, given=consumer.given | frozenset(of_jobs))
    table = Table({consumer.queue: consumer}, orders.table.tasks)
    return replace(orders, table=table, by_policy=orders.by_policy and "lease_s" not in of_process, **of_process)


def _divided(function: Callable[..., Any], options: WorkerOptions) -> tuple[dict[str, Any], Any]:
    """The options of the process, and those of the function's jobs; TypeError for one that does not exist."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    refuse_unknown(f"the worker {name}", options, {*WorkerOptions.__annotations__, *Where.__annotations__})
    given: dict[str, Any] = dict(options)
    of_process = {option: given.pop(option) for option in ProcessOptions.__annotations__ if option in given}
    return of_process, given


def _fields(options: ConsumerOptions) -> dict[str, Any]:
    """The options as fields of `Options`."""
    fields: dict[str, Any] = dict(options)
    if (type_ := fields.pop("type", None)) is not None:
        fields["codec"] = codec_for(type_, fields.get("codec"))
    return fields


def _mismatch(handler: Handler, execution: Kind) -> str:
    kind, fit = ("an async", "tasks") if handler.is_async else ("a sync", "threads")
    return f"{handler.name} is {kind} function and cannot run in {execution}: use {fit} or processes"
