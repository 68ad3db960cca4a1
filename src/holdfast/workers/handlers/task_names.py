"""Which task a message is for, and the handler of those that no function here is for."""

from collections.abc import Iterable
from typing import Any, Final, NoReturn

from msgspec import Raw, Struct, json

from holdfast.workers.handlers.handler import Handler
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.handlers.outcomes import UnknownTask

SHOWN_MOST = 10
"""How many names an error lists."""


class Named(Struct, frozen=True):
    """What the metadata of a message says about its task."""

    task: str | None = None
    v: Any = None


NO_TASK: Final = Named()

_decode = json.Decoder(Named).decode


def named_in(metadata: Raw | None) -> Named:
    """The task that metadata names; other metadata is the user's own."""
    if metadata is None:
        return NO_TASK
    try:
        return _decode(metadata)
    except (ValueError, RecursionError):
        return NO_TASK


class UnknownHandler(Handler):
    """Says why no function here runs a message."""

    def __init__(self, known: Iterable[str], *, is_async: bool) -> None:
        super().__init__(self._refuse)
        self.is_async = is_async
        self._known = known

    def _refuse(self, _value: object) -> NoReturn:
        raise UnknownTask("no function here is for it")

    @property
    def name(self) -> str:
        return "no function"

    def __call__(self, job: JobContext) -> NoReturn:
        named = named_in(job.message.metadata)
        if named.task is None:
            raise UnknownTask(f"it names no task, and nothing here takes other messages of queue {job.queue!r}")
        names = sorted(self._known)
        if named.task in names:
            raise UnknownTask(f"version {named.v!r} of task {named.task!r} is not accepted here")
        others = f", and {len(names) - SHOWN_MOST} more" if len(names) > SHOWN_MOST else ""
        raise UnknownTask(f"task {named.task!r} is not known here; known are: {', '.join(names[:SHOWN_MOST]) or 'none'}{others}")
