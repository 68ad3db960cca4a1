# Generated from src/holdfast/_async/flows/rating.py by tools/unasync.py; do not edit.
"""Reads the newest events of a queue, for what they say about its work."""

from collections.abc import Sequence

from holdfast.codec import check_duration
from holdfast.commands import Browse, Changes
from holdfast.commands.events import OLDEST
from holdfast.commands.topics import queue_topic
from holdfast.errors import Compacted
from holdfast.log_rates import Activity, LogPart, QueueRates, activity
from holdfast.records import Event, moment_in
from holdfast.stores import Store

EVENTS_MOST = 20_000
"""So many events count at most."""

STEPS = 60
"""Into so many steps a course over time is divided."""

PAGE = 1_000

LEAP = 32
"""So many times as many numbers are looked at behind a stretch that has no event."""


def queue_rates(store: Store, queue: str, since_s: float, *, by_group: bool) -> dict[str, QueueRates]:
    """What happened in the last seconds, as far as one reading goes."""
    return (_part(store, queue, since_s, EVENTS_MOST)).rates(by_group=by_group)


def each_rates(store: Store, queues: Sequence[str], since_s: float) -> dict[str, QueueRates]:
    """What happened in each of some queues in the last seconds; the newest events count, as many of each."""
    return {queue: part.rates()[""] for queue, part in (_parts(store, queues, since_s)).items()}


def queues_activity(store: Store, queues: Sequence[str], since_s: float) -> Activity:
    """What happened in some queues in the last seconds; the newest events count, as many of each."""
    return activity(_parts(store, queues, since_s), STEPS)


def _parts(store: Store, queues: Sequence[str], since_s: float) -> dict[str, LogPart]:
    most = EVENTS_MOST // max(len(queues), 1)
    return {queue: _part(store, queue, since_s, most) for queue in queues}


def _part(store: Store, queue: str, since_s: float, most: int) -> LogPart:
    """The newest events of a queue, not many more than so many seconds and so many events."""
    check_duration(since_s, "since_s", zero=False)
    around = store.execute(Browse(queue, ids=[]))
    since = around.now - moment_in(since_s)
    events, is_whole = _newest(store, queue_topic(queue), around.index, since, most)
    return LogPart(events, is_whole, since, around.now)


def _newest(store: Store, topic: str, newest: int, since: int, most: int) -> tuple[list[Event], bool]:
    """The newest events back to the moment, as many as count, and whether they reach it.

    It reads stretch before stretch, each with twice as many numbers, and with many more behind one without an event: a store may give out
    few numbers or many between two events, and begins with a large one.
    """
    found = list[Event]()
    upto, step = newest, PAGE
    while len(found) < most:
        after, floor = max(upto - step, 0), 0
        try:
            earlier = _between(store, topic, after, upto)
        except Compacted as error:
            floor = error.oldest
            if after > max(floor, 0):
                step *= LEAP
                continue  # A number that was skipped: the events before it have much smaller ones.
            after, earlier = 0, _between(store, topic, OLDEST, upto)
        step *= 2 if earlier else LEAP
        found = [*earlier, *found][-most:]
        if found and found[0].at < since:
            return found, True
        if after == 0:
            return found, len(found) < most and (floor <= 0 or not found)
        upto = after
    return found, False


def _between(store: Store, topic: str, after: int, upto: int) -> list[Event]:
    """The events behind one number up to another."""
    found = list[Event]()
    while after < upto:
        page = store.execute(Changes(topic, after, PAGE))
        found += [event for event in page.events if event.index <= upto]
        if page.upto <= after:
            break  # What follows is not committed yet.
        after = page.upto
    return found
