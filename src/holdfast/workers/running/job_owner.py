"""What running jobs ask of the worker that runs them."""

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from holdfast.errors import ClaimLost
from holdfast.holding.keepalive import Keepalive
from holdfast.records import Receipt
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.running.runs import Desk, Run
from holdfast.workers.running.settlements import settling_commands


class JobOwner:
    """Finds the run of a job by its receipt: a job that knew its run, which knows it, would leave both to the garbage collector."""

    def __init__(self, running: Mapping[Receipt, Run], desk: Desk, keepalive: Keepalive) -> None:
        self._running = running
        self._desk = desk
        self._keepalive = keepalive

    def report(self, job: JobContext, progress: Raw) -> None:
        """Say how far a job is, as long as it runs."""
        if (run := self._running.get(job.message.receipt)) is not None:
            self._desk.report(run, progress)

    def settling(self, job: JobContext, result: Any) -> list[Any]:
        """The commands that end a job as done, in a step of its function's; from now on no renewal may take it for lost."""
        receipt = job.message.receipt
        if (run := self._running.get(receipt)) is None:
            raise ClaimLost(f"job {job.id} of queue {job.queue!r} was given up before its function ended", [receipt])
        self._keepalive.drop(run.hold)
        return settling_commands([(run, run.performance.succeeded(result, run.job))], {})
