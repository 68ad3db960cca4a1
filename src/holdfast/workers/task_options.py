"""The options of a task."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from holdfast.arguments.options import refuse_unknown
from holdfast.arguments.put_options import IfPresent
from holdfast.codec import check_name, codec_for
from holdfast.rates import Rate
from holdfast.workers.calls import Messages, PutHook
from holdfast.workers.handlers.arguments import Arguments, TaskHandler
from holdfast.workers.handlers.batches import BatchHandler, BatchTerms
from holdfast.workers.handlers.signatures import declared
from holdfast.workers.options import JobOptions
from holdfast.workers.orders import Options


class TaskDefaults(JobOptions, total=False):
    """The options of `Tasks` that hold for each task that does not say otherwise.

    `results` is on by default: `results=False` saves a write for each job whose result is not asked for.
    """

    if_present: IfPresent | None
    """What a put does if there is a job of its key already: see `Queue.put`."""
    priority: int
    """Jobs of higher ones are handed out first; by default 0."""
    start_within_s: float | None
    """A job is dropped if no worker has started it so long after it was due; None, the default, is never."""


class TaskOptions(TaskDefaults, total=False):
    """The options of a task."""

    name: str
    """What jobs call it, by default its module and its name there; jobs that wait keep the name they were put under."""
    aliases: Sequence[str]
    """Names that it had before: jobs under them are run, too."""
    queue: str
    """The queue of its jobs, by default that of its `Tasks`."""
    version: str | None
    """Put beside each job; workers give back jobs of a version that they do not accept. None, the default, is no version."""
    versions: Sequence[str]
    """The versions whose jobs it accepts besides its own."""
    rate: Rate | None
    """How many of its jobs are handed out in a time, over all workers, retries included; None, the default, is no limit.

    Its jobs are the group of their queue that has its name. Workers set the rate of the group when they begin, and let the queue have fair
    groups if it has none.
    """
    key: Callable[..., Hashable] | None
    """Called like the function: the key of the job, of which at most one living message of the queue has each."""


PUT: Final = ("max_attempts", "dead_letter_queue", "priority", "start_within_s")
"""The options that every job of a task carries, because workers of other tasks must keep to them, too."""


def make_task(
    function: Callable[..., Any], name: str, queue: str, options: Mapping[str, Any], *, batch: BatchTerms | None = None
) -> Options:
    """How the jobs of a task are run; TypeError for a function or an option that cannot be."""
    refuse_unknown(f"the task {name}", options, set(TaskOptions.__annotations__))
    fields = {option: given for option, given in options.items() if option in Options.__struct_fields__ and option != "queue"}
    handler = (TaskHandler if batch is None else BatchHandler)(function, options.get("codec"))
    result_type = handler.codec.result_type
    version = options.get("version")
    defaults: dict[str, Any] = {
        "execution": "tasks" if handler.is_async else "threads",
        "results": True,
        "result_codec": codec_for(declared(result_type), options.get("codec")),
    }
    fields["versions"] = (*(() if version is None else (version,)), *options.get("versions", ()))
    return Options(queue=queue, handler=handler, task=name, given=frozenset(options), batch=batch, **(defaults | fields))


def messages_of(options: Options, given: Mapping[str, Any], hooks: Sequence[PutHook] = ()) -> Messages:
    """What makes the messages of a task, whose options were given so."""
    found = {"max_attempts": options.max_attempts} | {option: given[option] for option in PUT if option in given}
    if options.rate is not None:
        found["group"] = options.task
    version = given.get("version")
    return Messages(
        arguments_of(options),
        carried={option: value for option, value in found.items() if value is not None},
        named={"task": options.task} | ({} if version is None else {"v": version}),
        key=given.get("key"),
        if_present=given.get("if_present"),
        hooks=hooks,
        queue=options.queue,
    )


def task_name(function: Callable[..., Any], given: str | None) -> str:
    """The name of a task; ValueError for a function of the main program, which other processes know under another name."""
    if given is not None:
        return check_name(given, "task")
    module = getattr(function, "__module__", None) or "?"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if module == "__main__":
        raise ValueError(f'task {name} is in the main program, whose name differs between processes: give it one, @app.task(name="{name}")')
    return f"{module}.{name}"


def arguments_of(options: Options) -> Arguments:
    """The codec of a task's arguments."""
    handler = options.handler
    if not isinstance(handler, TaskHandler):
        raise TypeError(f"{handler.name} is not the function of a task")
    return handler.codec
