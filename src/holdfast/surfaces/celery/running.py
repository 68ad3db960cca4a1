"""The task that runs in this thread, and what it knows of its job."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from holdfast.surfaces.celery.task import Task


class Request(Struct, frozen=True):
    """What a bound task knows of the job that it runs: `self.request`."""

    id: str | None = None
    retries: int = 0
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    called_directly: bool = True
    is_eager: bool = False
    task: str | None = None
    """The name of the task."""


class Running:
    """A task that runs in this thread."""

    def __init__(self, task: "Task", request: Request) -> None:
        self.task = task
        self.request = request
        self.said: tuple[str | None, Any] = (None, None)
        """The state that it said last, and what went with it."""


running_here: ContextVar[Running | None] = ContextVar("holdfast_celery_task", default=None)
"""The task that runs in this thread, None outside of one."""


@contextmanager
def running(task: "Task", request: Request) -> Iterator[Running]:
    """Let a task be the one that runs here."""
    found = Running(task, request)
    token = running_here.set(found)
    try:
        yield found
    finally:
        running_here.reset(token)


class CurrentTask:
    """Stands for the task that runs here; it is false outside of one."""

    def __bool__(self) -> bool:
        return running_here.get() is not None

    def __getattr__(self, name: str) -> Any:
        found = running_here.get()
        if found is None:
            raise AttributeError(f"current_task.{name}: no task runs here")
        return getattr(found.task, name)


current_task: CurrentTask = CurrentTask()
