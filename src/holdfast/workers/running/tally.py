"""What a worker does and has done for one queue, as its heartbeats, its meters and its log say it."""

from collections.abc import Mapping, Sequence

from holdfast.records import Receipt
from holdfast.telemetry.meters import IN_FLIGHT
from holdfast.views.task_work import QueueWork
from holdfast.workers.running.log_lines import log_settled
from holdfast.workers.running.meter_jobs import meter_settled, times_of
from holdfast.workers.running.runs import DONE, FAILED, Finished, Run


class Tally:
    """Counts the runs of one queue."""

    done: int
    failed: int

    def __init__(self, queue: str, running: Mapping[Receipt, Run]) -> None:
        self._queue = queue
        self._running = running
        self.done = self.failed = 0
        self.work: QueueWork = QueueWork()
        """What was done of each task."""
        IN_FLIGHT.watch(queue, self)

    @property
    def begun(self) -> int:
        """How many run at this moment; others wait for their turn, or to be settled."""
        return len(self._begun())

    def running_functions(self) -> int:
        """How many functions run at this moment: a batch is one call."""
        runs = self._begun()
        return sum(run.batch is None for run in runs) + len({run.batch for run in runs if run.batch is not None})

    def _begun(self) -> list[Run]:
        return [run for run in list(self._running.values()) if run.has_begun and run.ended_at is None]

    def count(self, finished: Sequence[Finished]) -> None:
        """Count what was settled, and say so in the log."""
        if not finished:
            return
        for run, outcome in finished:
            self.done += outcome.how in DONE
            self.failed += outcome.how in FAILED
            log_settled(run, outcome)
            if run.options.task:
                ended = "done" if outcome.how in DONE else "failed" if outcome.how in FAILED else "returned"
                self.work.add(run.options.task, ended, *times_of(run))
        meter_settled(self._queue, finished)
