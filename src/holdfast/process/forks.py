"""Resets locks, threads and connections in a forked child."""

import os
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """What has something that only one process can have."""

    def begin_in_child(self) -> None:
        """Start again in a forked child, without what is the parent's."""
        ...


class Process:
    """Stands for one process: asking the system for its number at every claim would cost more than most of what a claim does."""


_all: WeakSet[Forkable] = WeakSet()
_current = Process()


def look_after(thing: Forkable) -> None:
    """Let it start again in every child that is forked while it is there."""
    _all.add(thing)


def this_process() -> Process:
    """The process that runs this; a forked child is another one."""
    return _current


def _begin_all() -> None:
    global _current  # noqa: PLW0603 - there is one process
    _current = Process()
    for thing in list(_all):
        thing.begin_in_child()


def call_in_child(function: Callable[[], object]) -> None:
    """Call it in every forked child; where there are no forks, never."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


call_in_child(_begin_all)
