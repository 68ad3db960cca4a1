# Generated from src/holdfast/_async/flows/rating.py by tools/unasync.py; do not edit.
"""Reads the newest events of a queue, for what they say about its work."""

from collections.abc import Sequence

from holdfast.codec import check_duration
from holdfast.commands import Browse, Changes, Read
from holdfast.commands.events import OLDEST
from holdfast.commands.topics import dict_topic, queue_topic
from holdfast.errors import Compacted
from holdfast.records import Event, moment_in, seconds_in
from holdfast.stores import Store
from holdfast.views.log_rates import EVENTS_MOST, Activity, KnownLog, LogEnd, LogMemory, LogPart, QueueRates, activity
from holdfast.views.task_rates import TaskRates, rates_of_tasks
from holdfast.workers.registry import WORKERS

STEPS = 60
"""Into so many steps a course over time is divided."""

PAGE = 1_000

LEAP = 32
"""So many times as many numbers are looked at behind a stretch that has no event."""


def queue_rates(store: Store, queue: str, since_s: float, *, by_group: bool) -> dict[str, QueueRates]:
    """What happened in the last seconds, as far as one reading goes."""
    return (_part(store, queue, since_s, EVENTS_MOST, LogMemory())).rates(by_group=by_group)


def each_rates(store: Store, queues: Sequence[str], since_s: float, memory: LogMemory) -> dict[str, QueueRates]:
    """What happened in each of some queues in the last seconds; the newest events count, as many of each."""
    return {queue: part.rates()[""] for queue, part in (_parts(store, queues, since_s, memory)).items()}


def task_rates(store: Store, queues: Sequence[str], since_s: float, memory: LogMemory) -> dict[str, dict[str, TaskRates]]:
    """What workers did of the tasks of some queues in the last seconds, as far as one reading of their heartbeats goes."""
    if not queues:
        return {}
    now = (store.execute(Browse(queues[0], ids=[]))).now
    newest = (store.execute(Read(WORKERS, [], anchor=True))).index
    part = _part_of(store, LogEnd(dict_topic(WORKERS), now, newest), since_s, EVENTS_MOST, memory)
    return {queue: rates_of_tasks(part.events, queue, part.since, seconds_in(part.window)) for queue in queues}


def queues_activity(store: Store, queues: Sequence[str], since_s: float, memory: LogMemory) -> Activity:
    """What happened in some queues in the last seconds; the newest events count, as many of each."""
    return activity(_parts(store, queues, since_s, memory), STEPS)


def _parts(store: Store, queues: Sequence[str], since_s: float, memory: LogMemory) -> dict[str, LogPart]:
    most = EVENTS_MOST // max(len(queues), 1)
    return {queue: _part(store, queue, since_s, most, memory) for queue in queues}


def _part(store: Store, queue: str, since_s: float, most: int, memory: LogMemory) -> LogPart:
    around = store.execute(Browse(queue, ids=[]))
    return _part_of(store, LogEnd(queue_topic(queue), around.now, around.index), since_s, most, memory)


def _part_of(store: Store, end: LogEnd, since_s: float, most: int, memory: LogMemory) -> LogPart:
    """The newest events of a log, not many more than so many seconds and so many events."""
    check_duration(since_s, "since_s", zero=False)
    since = end.now - moment_in(since_s)
    log = memory.recall(end.topic, since, most)
    if log is not None:
        log = _longer(store, end.topic, log, end.newest)
    if log is None:
        log = _newest(store, end.topic, end.newest, since, most)
    memory.keep(end.topic, log)
    return log.part(since, end.now, most)


def _longer(store: Store, topic: str, log: KnownLog, newest: int) -> KnownLog | None:
    """The log with the events that came since; None where it cannot go on from there."""
    if log.upto > newest:
        return None
    try:
        return log.longer(*_between(store, topic, log.upto, newest))
    except Compacted:
        return None


def _newest(store: Store, topic: str, newest: int, since: int, most: int) -> KnownLog:
    """The newest events back to the moment, as many as count.

    It reads stretch before stretch, each with twice as many numbers, and with many more behind one without an event: a store may give out
    few numbers or many between two events, and begins with a large one.
    """
    found = list[Event]()
    upto, step, known_upto = newest, PAGE, None
    while len(found) < most:
        after, floor = max(upto - step, 0), 0
        try:
            earlier, read_upto = _between(store, topic, after, upto)
        except Compacted as error:
            floor = error.oldest
            if after > max(floor, 0):
                step *= LEAP
                continue  # A number that was skipped: the events before it have much smaller ones.
            after = 0
            earlier, read_upto = _between(store, topic, OLDEST, upto)
        known_upto = read_upto if known_upto is None else known_upto
        step *= 2 if earlier else LEAP
        found = [*earlier, *found][-most:]
        is_first = after == 0 and len(found) < most and (floor <= 0 or not found)
        if is_first or (found and found[0].at < since):
            return KnownLog(found, since, known_upto)
        if after == 0:
            break
        upto = after
    return KnownLog(found, found[0].at, newest if known_upto is None else known_upto)


def _between(store: Store, topic: str, after: int, upto: int) -> tuple[list[Event], int]:
    """The events behind one number up to another, and how far they could be read."""
    found = list[Event]()
    while after < upto:
        page = store.execute(Changes(topic, after, PAGE))
        found += [event for event in page.events if event.index <= upto]
        if page.upto <= after:
            break  # What follows is not committed yet.
        after = page.upto
    return found, min(after, upto)
