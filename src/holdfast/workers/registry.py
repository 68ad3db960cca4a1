"""The registry of live workers, kept alive by heartbeats."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Raw, Struct, json

from holdfast.views.task_work import TaskWork

WORKERS = "holdfast-workers"
"""The dict of living workers, by name and incarnation."""

MISSED_BEATS = 3
"""After so many missed heartbeats a worker counts as dead."""

WorkerState = Literal["working", "paused", "open", "stopping", "away", "stopped"]


class WorkerHealth(Struct, frozen=True):
    """How a worker is at this moment.

    `state` is `working`, `paused`, `open` (its circuit breaker is), `stopping`, `away` (it cannot reach its store, and goes on by itself
    once it can) or `stopped`.
    """

    state: WorkerState
    running: int
    done: int
    failed: int
    abandoned: int
    """Handlers that ran over their hard limit, or over `max_hold_s`, in threads and tasks that cannot be ended."""
    error: str | None = None
    """Why the store was not reached, the last time that happened."""
    outages: int = 0
    """How often the store went away and came back."""


class WorkerInfo(Struct, frozen=True, omit_defaults=True):
    """A worker as others see it; `incarnation` tells a restarted one from the one before, whatever its name."""

    name: str
    incarnation: str
    queue: str
    """The first of its queues."""
    host: str
    pid: int
    execution: str
    concurrency: int
    started_at: datetime
    seen_at: datetime
    health: WorkerHealth
    schedules: bool = False
    """Whether it puts the runs of schedules that are due."""
    tasks: tuple[str, ...] = ()
    """The names of the tasks that it runs, besides whatever else is put into its queues."""
    queues: tuple[str, ...] = ()
    """All queues that it serves; empty if a version wrote it that served one."""
    consumers: dict[str, str] = {}
    """The names of its functions for messages that name no task, by queue."""

    work: dict[str, Mapping[str, TaskWork]] = {}
    """What it has done so far of each task, by queue: see `Queue.task_rates`."""

    def serves(self, queue: str) -> bool:
        """Whether it runs jobs of the queue."""
        return queue == self.queue or queue in self.queues

    @property
    def raw(self) -> Raw:
        """The entry as it is stored."""
        return Raw(json.encode(self))


def info_of(raw: Raw) -> WorkerInfo:
    """An entry as it was stored."""
    return json.decode(raw, type=WorkerInfo)


def functions_of(living: Iterable[WorkerInfo], queue: str) -> dict[str, list[str]]:
    """The functions that workers of a queue call for messages that name no task, each with the names of its workers."""
    found: dict[str, set[str]] = {}
    for one in living:
        if queue in one.consumers and one.serves(queue):
            found.setdefault(one.consumers[queue], set()).add(one.name)
    return {function: sorted(names) for function, names in sorted(found.items())}


def shown_functions(functions: Mapping[str, Sequence[str]]) -> str:
    """Functions with their workers, for people."""
    return " and ".join(f"{function} ({counted_names(names)})" for function, names in functions.items())


def counted_names(names: Sequence[str]) -> str:
    """The first of these workers, and how many more there are."""
    return f"worker {names[0]}" if len(names) == 1 else f"worker {names[0]} and {len(names) - 1} more"
