"""What the meters of a worker count of its jobs."""

from holdfast.records import seconds_in
from holdfast.telemetry.meters import JOB_SECONDS, JOBS, WAIT_SECONDS
from holdfast.workers.handlers.outcomes import Outcome
from holdfast.workers.running.runs import Run


def meter_settled(run: Run, outcome: Outcome) -> None:
    """Count how a run ended, once the store knows."""
    queue = run.message.queue
    JOBS.add(1, queue, outcome.how)
    wait_s, duration_s = times_of(run)
    if wait_s is not None and duration_s is not None:
        JOB_SECONDS.add(duration_s, queue)
        WAIT_SECONDS.add(wait_s, queue)


def times_of(run: Run) -> tuple[float, float] | tuple[None, None]:
    """How long it waited for its claim, and how long it took; None if it did not begin."""
    if run.began_at is None or run.ended_at is None:
        return None, None
    return max(0.0, seconds_in(run.message.since - run.message.position)), run.ended_at - run.began_at
