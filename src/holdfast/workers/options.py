"""The options that users give to workers and to functions."""

from collections.abc import Callable, Hashable
from typing import Any, TypedDict

from holdfast.backoff import Backoff
from holdfast.codec import Codec
from holdfast.records import ReturnTo
from holdfast.workers.execution import Kind
from holdfast.workers.handlers.judgement import Judge
from holdfast.workers.running.breaker import Breaker


class ProcessOptions(TypedDict, total=False):
    """The options of a worker that say how it claims and runs jobs, whatever they are."""

    name: str
    """What people call it, by default the machine and the process; several workers may share a name."""
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
    min_interval_s: float
    """How far apart jobs begin at least, by default 0 seconds."""
    breaker: Breaker | None
    """When to pause because jobs fail one after the other, by default never."""
    grace_s: float
    """How long jobs may go on when the worker is told to stop, by default 30 seconds."""
    heartbeat_s: float | None
    """How often the worker shows in the registry that it lives, by default every 10 seconds; None keeps it out of it."""
    poll_interval_s: float
    """How often to look for jobs although no wake-up came, by default every second: the most that a missed wake-up can cost."""
    unknown_for_s: float | None
    """How long a job of a task, version or parameter that nothing here knows is given back to other workers, from its put or its last
    redrive on, before it is a dead letter: by default a day; None is for ever."""
    max_jobs_per_child: int | None
    """After how many jobs a child process is replaced, for functions with `execution="processes"`; None, the default, is never."""
    max_rss_mb: int | None
    """With how much memory, in MiB and measured after each job, a child process is replaced; None, the default, is never.

    Only this child is replaced, and its successor is started before it ends.
    """
    schedules: bool
    """Whether the worker puts the runs of schedules that are due, of any queue of its store; by default True."""


class JobOptions(TypedDict, total=False):
    """The options that say how the jobs of one function are run."""

    execution: Kind
    """Where the function runs: `threads` (the default of sync functions), `tasks` (of async ones), or `processes`."""
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
    results: bool
    """Whether to keep what the function returns, for `Job.result`; by default False."""
    keep_result_s: float | None
    """How long a result, and a report of progress, is kept, by default a day; None is for ever."""
    tracebacks: bool
    """Whether to keep the last three errors of a job, with their tracebacks, for `Job.status`; by default True. Locals are never kept."""
    idempotent: bool
    """Whether the effects of a job must not happen twice, by default False: see `Once` for what that promises."""
    idempotency_key: Callable[[Any], Hashable] | None
    """Gives for a value the key under which its effects are remembered, by default the id of the message."""
    remember_s: float | None
    """How long it is remembered that a job was done, by default a week; None is for ever."""
    reconcile: Callable[..., Any] | None
    """Called like the function when an execution died: it returns the result if the effects happened, and `MISSING` if not."""
    most: int | None
    """How many of its jobs run at once in one worker, of a batch how many calls; by default as many as the concurrency allows.

    A job over this number goes back to the queue for a while, and burns nothing. For a limit over all workers see `Queue.configure`.
    """
    judge: Judge | None
    """Called with an exception and the job: it may return a `Snooze`, a `Retry`, a `Bury`, or None to leave it as it is."""
    codec: Codec
    """How values are encoded, instead of as their type says."""
    result_codec: Codec
    """How results are encoded; by default by the annotation of what the function returns where that is such a class, else as plain data."""


class ConsumerOptions(JobOptions, total=False):
    """The options of a function that takes whatever is put into a queue."""

    type: Any
    """The type of the values: a dataclass, a msgspec Struct, a pydantic model, or a generic of those.

    By default it is the annotation of the function's first parameter where that is such a class, else plain data.
    """


class WorkerOptions(ConsumerOptions, ProcessOptions, total=False):
    """The options of a worker besides its function and its queue."""
