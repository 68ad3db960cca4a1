"""The tasks that a durable job can call, and the calls of a map."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar, Unpack, runtime_checkable

from holdfast.arguments.put_options import PutOptions
from holdfast.codec import Codec
from holdfast.codec.limits import shown
from holdfast.commands import Item
from holdfast.records import Message
from holdfast.workers.steps.rows import digest, text_of_arguments

if TYPE_CHECKING:
    from holdfast.workers.calls import Call

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

MAP_MOST: Final = 100_000
"""How many children one map has at most."""


@runtime_checkable
class CallableTask(Protocol[P, R_co]):
    """A task that a job can call: what `Tasks.task` makes."""

    @property
    def name(self) -> str:
        """What jobs call it."""
        ...

    @property
    def queue(self) -> str:
        """The queue of its jobs."""
        ...

    @property
    def options(self) -> Any:
        """How its jobs are run."""
        ...

    def args(self, *args: P.args, **kwargs: P.kwargs) -> "Call[R_co]":
        """A call of it."""
        ...

    def message(self, call: "Call[Any]", **options: Unpack[PutOptions]) -> Item:
        """The message that a put of this call makes."""
        ...


@runtime_checkable
class TaskCall(Protocol):
    """A call of a task."""

    def of(self, task: str) -> dict[str, Any]:
        """The arguments, if they are for this task; else ValueError."""
        ...


class MapCalls:
    """The calls of a map, and what makes their messages."""

    def __init__(self, task: CallableTask[..., Any], calls: "list[Call[Any]]", parent: Message) -> None:
        self.hash: str = digest(b"\0".join(text_of_arguments(call.of(task.name)) for call in calls))
        self.name: str = task.name
        self.queue: str = task.queue
        self.codec: Codec = task.options.result_codec
        self._task = task
        self._calls = calls
        self._parent = parent

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self._calls)

    def item(self, number: int, child_id: str, marks: str) -> Item:
        """The message of a child."""
        parent = [self._parent.queue, self._parent.id, marks, None, len(self._calls)]
        return self._task.message(self._calls[number], id=child_id, metadata={"parent": parent})


def map_calls(task: CallableTask[..., Any], calls: "Iterable[Call[Any]]", parent: Message, on_failure: str) -> MapCalls:
    """The calls of a map, checked."""
    check_task(task)
    found = list(calls)
    for call in found:
        if not isinstance(call, TaskCall):
            raise TypeError(f"a map takes calls of a task, as task.args(…) gives them, not {shown(call)} ({type(call).__name__})")
    if len(found) > MAP_MOST:
        raise ValueError(f"a map has at most {MAP_MOST:,} calls, not {len(found):,}: make several")
    if on_failure not in ("raise", "collect"):
        raise ValueError(f"on_failure must be one of 'raise', 'collect', not {on_failure!r}")
    return MapCalls(task, found, parent)


def check_task(task: object) -> None:
    """Refuse what is no task, such as the function of one."""
    if not isinstance(task, CallableTask):
        raise TypeError(f"a job calls tasks, as @app.task makes them, not {shown(task)} ({type(task).__name__}): a function is a step")
