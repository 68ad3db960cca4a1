"""What the meters of a worker count of its jobs."""

from collections.abc import Sequence

from holdfast.records import seconds_in
from holdfast.telemetry.meters import IN_FLIGHT, JOB_SECONDS, JOBS, WAIT_SECONDS
from holdfast.workers.running.runs import Finished, Run


def meter_settled(queue: str, finished: Sequence[Finished]) -> None:
    """Count how runs of a queue ended, once the store knows."""
    counts: dict[str, int] = {}
    waits_s, durations_s = list[float](), list[float]()
    for run, outcome in finished:
        counts[outcome.how] = counts.get(outcome.how, 0) + 1
        wait_s, duration_s = times_of(run)
        if wait_s is not None and duration_s is not None:
            waits_s.append(wait_s)
            durations_s.append(duration_s)
    for how, count in counts.items():
        JOBS.add(count, queue, how)
    if durations_s:
        JOB_SECONDS.record(durations_s, queue)
        WAIT_SECONDS.record(waits_s, queue)
    IN_FLIGHT.tell()


def times_of(run: Run) -> tuple[float, float] | tuple[None, None]:
    """How long it waited for its claim, and how long it took; None if it did not begin."""
    if run.began_at is None or run.ended_at is None:
        return None, None
    return max(0.0, seconds_in(run.message.since - run.message.position)), run.ended_at - run.began_at
