"""Methods of an async job that were called and not awaited."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import CORO_CREATED, getcoroutinestate, signature
from typing import Any, Final, Protocol, TypeVar, cast

from holdfast.wording import counted

Made = Coroutine[Any, Any, Any]

KEPT: Final = 64
"""So many calls are kept before those that have begun are forgotten."""


class Calls:
    """What a run has called of its job, to find at its end what never began."""

    def __init__(self) -> None:
        self._made: list[tuple[str, Made]] = []

    def add(self, shown: str, made: Made) -> None:
        """Keep a call until it has begun."""
        if len(self._made) >= KEPT:
            self._made = self._unbegun()
        self._made.append((shown, made))

    def refuse(self) -> None:
        """Raise TypeError if a call was not awaited, of which nothing happened."""
        if not (unbegun := self._unbegun()):
            return
        shown = unbegun[0][0]
        others = f", and {counted(len(unbegun) - 1, 'other call')} of the job," if len(unbegun) > 1 else ""
        raise TypeError(f"{shown}{others} was not awaited, so nothing of it happened: write await {shown}")

    def forget(self) -> None:
        """Close what never began, of which Python would warn; what a task is about to begin is its own."""
        if unbegun := self._unbegun():
            owned = {task.get_coro() for task in asyncio.all_tasks()}
            for _, made in unbegun:
                if made not in owned:
                    made.close()
        self._made = []

    def _unbegun(self) -> list[tuple[str, Made]]:
        return [(shown, made) for shown, made in self._made if getcoroutinestate(made) == CORO_CREATED]


class HasCalls(Protocol):
    """An async job."""

    @property
    def calls(self) -> Calls:
        """What its run has called."""
        ...


F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])


def awaited(method: F) -> F:
    """Let a run fail in which this method was called and not awaited."""
    is_named = [*signature(method).parameters][1:2] in (["name"], ["task"])

    @wraps(method)
    def call(job: HasCalls, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        made = method(job, *args, **kwargs)
        job.calls.add(f"job.{method.__name__}({_shown(args) if is_named else ''})", made)
        return made

    return cast("F", call)


def _shown(args: tuple[Any, ...]) -> str:
    """The name of what was called, whose other arguments are not shown."""
    named = repr(getattr(args[0], "name", args[0])) if args else ""
    return f"{named}, …" if len(args) > 1 else named
