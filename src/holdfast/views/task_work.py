"""What a worker has done of each task since it began: told with its heartbeats, from which rates of tasks are worked out."""

import math
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

TASKS_MOST: Final = 100
"""So many tasks of a queue are in a heartbeat; the others are left out."""

STEP: Final = 1.25
"""Waits and durations are counted in steps, each so many times as long as the one before."""

SHORTEST_S: Final = 1e-6


class TaskWork(Struct):
    """How often runs of a task ended, and how long they waited and took, by the number of the step."""

    done: int = 0
    failed: int = 0
    returned: int = 0
    waits: dict[int, int] = {}
    durations: dict[int, int] = {}

    def since(self, before: "TaskWork") -> "TaskWork":
        """What came after an earlier look."""
        return TaskWork(
            self.done - before.done,
            self.failed - before.failed,
            self.returned - before.returned,
            dict(Counter(self.waits) - Counter(before.waits)),
            dict(Counter(self.durations) - Counter(before.durations)),
        )

    def joined(self, other: "TaskWork") -> "TaskWork":
        """Together with another worker's."""
        return TaskWork(
            self.done + other.done,
            self.failed + other.failed,
            self.returned + other.returned,
            dict(Counter(self.waits) + Counter(other.waits)),
            dict(Counter(self.durations) + Counter(other.durations)),
        )


class QueueWork:
    """What the runs of one queue came to, by task."""

    def __init__(self) -> None:
        # Guards what is counted: heartbeats come from another thread.
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskWork] = {}

    def add(self, task: str, ended: str, wait_s: float | None, duration_s: float | None) -> None:
        """Count a run: how it ended, as a field of `TaskWork`, and its times if it began."""
        with self._lock:
            work = self._tasks.get(task)
            if work is None:
                if len(self._tasks) >= TASKS_MOST:
                    return
                work = self._tasks[task] = TaskWork()
            setattr(work, ended, getattr(work, ended) + 1)
            for counts, span_s in ((work.waits, wait_s), (work.durations, duration_s)):
                if span_s is not None:
                    step = step_of(span_s)
                    counts[step] = counts.get(step, 0) + 1

    def told(self) -> Mapping[str, TaskWork]:
        """All of it so far."""
        with self._lock:
            return {task: work.since(TaskWork()) for task, work in self._tasks.items()}


def step_of(span_s: float) -> int:
    """The step that a time is counted in."""
    return round(math.log(max(span_s, SHORTEST_S), STEP))


def span_at(steps: Mapping[int, int], share: float) -> float | None:
    """The time that such a share is shorter than, to an eighth."""
    place, seen = int(sum(steps.values()) * share), 0
    for step, count in sorted(steps.items()):
        seen += count
        if seen > place:
            return float(STEP**step)
    return None
