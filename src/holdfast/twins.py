"""`.aio`: from what threads use to the same thing for tasks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from holdfast._async.handles.queue import AsyncQueue
    from holdfast._sync.handles.queue import Queue

T = TypeVar("T")


def load(module: str, name: str) -> Any:
    """Give a class by its name; imported only now, because it is of a layer above or belongs to the other twin."""
    return getattr(import_module(module), name)


class Twin:
    """On a class its twin for tasks; on a handle one for tasks with the same name, client and type."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __get__(self, handle: Any, owner: type) -> Any:
        for_tasks = load(self._module, self._name)
        if handle is None or isinstance(handle, for_tasks):
            return for_tasks if handle is None else handle
        twin = for_tasks.__new__(for_tasks)
        vars(twin).update(vars(handle))
        return twin


class QueueTwin(Twin):
    """The twin of a queue."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, handle: None, owner: type) -> "type[AsyncQueue[Any]]": ...
        @overload
        def __get__(self, handle: "Queue[T] | AsyncQueue[T]", owner: type) -> "AsyncQueue[T]": ...
        def __get__(self, handle: Any, owner: type) -> Any: ...
