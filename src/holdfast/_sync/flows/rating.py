# Generated from src/holdfast/_async/flows/rating.py by tools/unasync.py; do not edit.
"""Reads the newest events of a queue, for what they say about its work."""

from holdfast.codec import check_duration
from holdfast.commands import Browse, Changes
from holdfast.commands.events import OLDEST
from holdfast.commands.topics import queue_topic
from holdfast.errors import Compacted
from holdfast.log_rates import LogRates, QueueRates
from holdfast.records import moment_in, seconds_in
from holdfast.stores import Store

EVENTS_MOST = 20_000
"""So many events one reading takes at most."""

STEPS = (1_000, EVENTS_MOST)
"""So many numbers before the newest the reading begins, the first that is early enough."""

PAGE = 1_000


def queue_rates(store: Store, queue: str, since_s: float, *, by_group: bool) -> dict[str, QueueRates]:
    """What happened in the last seconds, as far as one reading goes."""
    check_duration(since_s, "since_s", zero=False)
    topic, rates = queue_topic(queue), LogRates(by_group=by_group)
    around = store.execute(Browse(queue, ids=[]))
    since = around.now - moment_in(since_s)
    after, is_whole = _start(store, topic, around.index, since)
    first, last, left = None, around.now, EVENTS_MOST
    while left > 0:
        page = store.execute(Changes(topic, after, min(PAGE, left)))
        rates.add(page.events, since)
        if first is None and page.events:
            first = page.events[0].at
        left -= len(page.events)
        after = page.upto
        if after >= min(page.latest, around.index):
            break
        if left <= 0:
            last, is_whole = page.events[-1].at, False
    begin = since if is_whole or first is None else max(first, since)
    return rates.result(since_s if is_whole else max(seconds_in(last - begin), 0.0), is_whole=is_whole)


def _start(store: Store, topic: str, newest: int, since: int) -> tuple[int, bool]:
    """Behind which number to begin, and whether that is before the moment."""
    if (store.execute(Changes(topic, OLDEST, PAGE))).upto >= newest:
        return OLDEST, True
    for step in STEPS:
        after = newest - step
        if after <= 0:
            return OLDEST, True
        try:
            found = (store.execute(Changes(topic, after, 1))).events
        except Compacted as error:
            # Pruned, or a number that was never given out, before all events where none was pruned.
            found = (store.execute(Changes(topic, OLDEST, 1))).events
            return OLDEST, error.oldest <= 0 or not found or found[0].at < since
        if not found or found[0].at < since:
            return after, True
    return newest - EVENTS_MOST, False
