"""Ways to run handlers: in threads, as tasks, in processes."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from holdfast.workers.handlers.outcomes import Outcome
from holdfast.workers.running.runs import Run

Kind = Literal["threads", "tasks", "processes"]

Began = Callable[[Run], object]
Finish = Callable[[Run, Outcome], object]


class Execution(Protocol):
    """Runs handlers, several at a time; its methods return at once and are called from any thread."""

    def start(self, runs: Sequence[Run]) -> None:
        """Begin these, unless they are taken by then; each that begins is `began` and, sooner or later, `finished`."""
        ...

    def stop(self, run: Run) -> None:
        """Tell a run to end: its job says why. A thread can only be told, a task is cancelled, a process is interrupted."""
        ...

    def abandon(self, run: Run) -> None:
        """Waste no more on a run: a process is killed, a thread is replaced and may end when it likes."""
        ...

    def close(self) -> None:
        """End everything that can be ended; never waits for a handler in a thread."""
        ...
