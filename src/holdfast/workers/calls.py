"""Calls of a task, and the messages that carry them."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Raw, Struct

from holdfast.arguments.put_options import IfPresent, make_item
from holdfast.codec.limits import shown
from holdfast.commands import Item
from holdfast.workers.handlers.arguments import Arguments

R_co = TypeVar("R_co", covariant=True)


class Call(Generic[R_co]):
    """The arguments of one call of a task: what `Task.args` gives, for `Task.put_many`, a flow or a `Schedule`."""

    def __init__(self, task: str, arguments: dict[str, Any], messages: "Messages") -> None:
        self.task = task
        self.arguments = arguments
        self._messages = messages

    @property
    def queue(self) -> str:
        """The queue of the task."""
        return self._messages.queue

    def message(self, options: Mapping[str, Any]) -> Item:
        """The message that a put of it makes; the options are those of `Queue.put`."""
        return self._messages.item(self.arguments, options)

    def of(self, task: str) -> dict[str, Any]:
        """The arguments, if they are for this task; else ValueError."""
        if self.task != task:
            raise ValueError(f"a call of {self.task!r} cannot be put for {task!r}: each task puts its own")
        return self.arguments

    def __repr__(self) -> str:
        return f"<Call of {self.task!r}>"


def check_call(call: object) -> None:
    """Refuse what is no call of a task, such as its arguments or the task itself."""
    if not isinstance(call, Call):
        raise TypeError(f"a call of a task is needed, as task.args(…) gives it, not {shown(call)} ({type(call).__name__})")


def listed_calls(calls: Iterable[Call[R_co]]) -> list[Call[R_co]]:
    """The calls; TypeError for what is none, or no list of them."""
    if not isinstance(calls, Iterable):
        raise TypeError(f"a list of calls is needed, as in [task.args(…)], not {shown(calls)} ({type(calls).__name__})")
    listed = list(calls)
    for call in listed:
        check_call(call)
    return listed


class Encoded:
    """A codec of one value that is encoded already."""

    name = "encoded"

    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    def encode(self, value: object) -> Raw:
        del value
        return self._raw

    def decode(self, raw: Raw | bytes | memoryview) -> Any:
        return raw


class Outgoing(Struct):
    """A job that is about to be put, as `Tasks.on_put` sees it; `metadata` may be added to."""

    task: str
    queue: str
    arguments: Mapping[str, Any]
    metadata: dict[str, Any]


PutHook = Callable[[Outgoing], object]


class Messages(Struct, frozen=True):
    """Makes the messages of a task: the value has the arguments, the metadata names the task."""

    arguments: Arguments
    carried: Mapping[str, Any]
    """The options of every put."""
    named: Mapping[str, Any]
    key: Callable[..., Hashable] | None = None
    if_present: IfPresent | None = None
    hooks: Sequence[PutHook] = ()
    queue: str = ""

    def without(self, arguments: Raw) -> Item:
        """The message of a call of which these arguments are known, encoded; others follow before it is put."""
        if self.key is not None:
            raise ValueError(f"task {self.arguments.name} has key=, which needs all arguments: give it no result of another node")
        return make_item(None, Encoded(arguments), {**self.carried, "metadata": dict(self.named)})

    def item(self, arguments: dict[str, Any], options: Mapping[str, Any]) -> Item:
        """The message of one call; what a hook raises is raised, and nothing is put."""
        if "group" in self.carried and options.get("group") is not None:
            raise ValueError(f"task {self.named['task']} has rate=, for which its jobs are a group of their own: put them without group=")
        fields = {**self.carried, **options}
        if self.key is not None and "key" not in options:
            fields["key"] = self.key(**arguments)
        if self.if_present is not None and fields.get("key") is not None:
            fields.setdefault("if_present", self.if_present)
        fields["metadata"] = {**(options.get("metadata") or {}), **self.named}
        for hook in self.hooks:
            outgoing = Outgoing(self.named["task"], self.queue, arguments, fields["metadata"])
            hook(outgoing)
            fields["metadata"] = {**outgoing.metadata, **self.named}
        return make_item(arguments, self.arguments, fields)
