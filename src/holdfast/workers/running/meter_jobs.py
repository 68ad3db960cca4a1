"""What the meters of a worker count of its jobs."""

from holdfast.records import seconds_in
from holdfast.telemetry.meters import JOB_SECONDS, JOBS, WAIT_SECONDS
from holdfast.workers.handlers.outcomes import Outcome
from holdfast.workers.running.runs import Run


def meter_settled(run: Run, outcome: Outcome) -> None:
    """Count how a run ended, once the store knows."""
    message = run.message
    JOBS.add(1, message.queue, outcome.how)
    if run.began_at is not None and run.ended_at is not None:
        JOB_SECONDS.add(run.ended_at - run.began_at, message.queue)
        WAIT_SECONDS.add(max(0.0, seconds_in(message.since - message.position)), message.queue)
