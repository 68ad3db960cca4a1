"""What the heartbeats of workers say about the tasks of a queue."""

from collections.abc import Iterable, Mapping

from msgspec import DecodeError, Struct, ValidationError, json

from holdfast.records import Event
from holdfast.views.task_work import TaskWork, span_at


class TaskRates(Struct, frozen=True):
    """What workers did of one task of a queue in the last seconds, by what they say with their heartbeats.

    What was done since the last heartbeat is not in it yet, nor what a worker that was killed had not said.
    """

    window_s: float
    """How many seconds it is about: those asked for, or fewer where the log or the bound of one reading ends earlier."""
    done: int = 0
    failed: int = 0
    """Runs that failed, or made their message a dead letter."""
    returned: int = 0
    """Runs whose message went back without a failure: released, snoozed, or asleep in a durable job."""
    done_per_s: float = 0.0
    failed_share: float | None = None
    """Of the runs that were done or failed, those that failed."""
    median_wait_s: float | None = None
    """From the moment a message was due to its claim. This and the other times are exact to an eighth."""
    p95_wait_s: float | None = None
    median_duration_s: float | None = None
    """From the beginning of a run to its end."""
    p95_duration_s: float | None = None


class _Entry(Struct):
    key: str = ""
    value: "_Said | None" = None


class _Said(Struct):
    work: dict[str, dict[str, TaskWork]] = {}


_decode = json.Decoder(_Entry).decode


def rates_of_tasks(events: Iterable[Event], queue: str, since: int, window_s: float) -> dict[str, TaskRates]:
    """By task, from the events of the registry of workers: what each worker said last, without what it had said by that moment."""
    before, last = dict[str, Mapping[str, TaskWork]](), dict[str, Mapping[str, TaskWork]]()
    for event in events:
        if event.event != "written":
            continue
        try:
            entry = _decode(event.data)
        except (DecodeError, ValidationError):
            continue  # Whoever may write the dict may write anything.
        work: Mapping[str, TaskWork] = {} if entry.value is None else entry.value.work.get(queue, {})
        if event.at < since or entry.key not in before:
            before[entry.key] = work
        last[entry.key] = work
    sums = dict[str, TaskWork]()
    for key, work in last.items():
        for task, one in work.items():
            sums[task] = sums.get(task, TaskWork()).joined(one.since(before[key].get(task, TaskWork())))
    return {task: _rates(one, window_s) for task, one in sorted(sums.items()) if one.done or one.failed or one.returned}


def _rates(work: TaskWork, window_s: float) -> TaskRates:
    ended = work.done + work.failed
    return TaskRates(
        window_s=window_s,
        done=work.done,
        failed=work.failed,
        returned=work.returned,
        done_per_s=work.done / window_s if window_s else 0.0,
        failed_share=work.failed / ended if ended else None,
        median_wait_s=span_at(work.waits, 0.5),
        p95_wait_s=span_at(work.waits, 0.95),
        median_duration_s=span_at(work.durations, 0.5),
        p95_duration_s=span_at(work.durations, 0.95),
    )
