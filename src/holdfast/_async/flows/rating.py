"""Reads the newest events of a queue, for what they say about its work."""

from holdfast.codec import check_duration
from holdfast.commands import Browse, Changes
from holdfast.commands.events import OLDEST
from holdfast.commands.topics import queue_topic
from holdfast.errors import Compacted
from holdfast.log_rates import LogRates, QueueRates
from holdfast.records import Event, moment_in, seconds_in
from holdfast.stores import AsyncStore

EVENTS_MOST = 20_000
"""So many events count at most."""

PAGE = 1_000


async def queue_rates(store: AsyncStore, queue: str, since_s: float, *, by_group: bool) -> dict[str, QueueRates]:
    """What happened in the last seconds, as far as one reading goes."""
    check_duration(since_s, "since_s", zero=False)
    rates = LogRates(by_group=by_group)
    around = await store.execute(Browse(queue, ids=[]))
    since = around.now - moment_in(since_s)
    events, is_whole = await _newest(store, queue_topic(queue), around.index, since)
    rates.add(events, since)
    begin = since if is_whole or not events else max(events[0].at, since)
    return rates.result(since_s if is_whole else seconds_in(around.now - begin), is_whole=is_whole)


async def _newest(store: AsyncStore, topic: str, newest: int, since: int) -> tuple[list[Event], bool]:
    """The newest events back to the moment, as many as count, and whether they reach it.

    It reads stretch before stretch, each with twice as many numbers: a store may give out few of them or many between two events.
    """
    found = list[Event]()
    upto, step = newest, PAGE
    while len(found) < EVENTS_MOST:
        after, floor = max(upto - step, 0), 0
        step *= 2
        try:
            earlier = await _between(store, topic, after, upto)
        except Compacted as error:
            floor = error.oldest
            if after > max(floor, 0):
                continue  # A number that was skipped: the events before it have much smaller ones.
            after, earlier = 0, await _between(store, topic, OLDEST, upto)
        found = [*earlier, *found][-EVENTS_MOST:]
        if found and found[0].at < since:
            return found, True
        if after == 0:
            return found, len(found) < EVENTS_MOST and (floor <= 0 or not found)
        upto = after
    return found, False


async def _between(store: AsyncStore, topic: str, after: int, upto: int) -> list[Event]:
    """The events behind one number up to another."""
    found = list[Event]()
    while after < upto:
        page = await store.execute(Changes(topic, after, PAGE))
        found += [event for event in page.events if event.index <= upto]
        if page.upto <= after:
            break  # What follows is not committed yet.
        after = page.upto
    return found
