# Generated from src/holdfast/_async/flows/observing.py by tools/unasync.py; do not edit.
"""Observes the holder of a lease: the current one, then each later one."""

import math
from collections.abc import Generator

from holdfast.commands import Changes, Look
from holdfast.commands.topics import log_topic, watch_topic
from holdfast.errors import Compacted
from holdfast.results import LeaseHolder, wall_time
from holdfast.stores import Store
from holdfast.views.watch_subjects import facts_of

POLL_S = 1.0
"""How much a missed wake-up can cost."""

PAGE = 1_000


def observe(store: Store, key: str, poll_s: float = POLL_S) -> Generator[LeaseHolder, None]:
    """Yield the holder of a lease with no dict, then every later one, in order of their tokens, for ever."""
    topic = log_topic(None, key)
    holder, last_index = holder_of(store, key)
    if holder is not None:
        yield holder
    with store.mark(watch_topic(topic)) as mark:
        while True:
            try:
                page = store.execute(Changes(topic, last_index, PAGE))
            except Compacted:
                # Older than what is kept: whoever came and went meanwhile is not known any more.
                before = holder
                holder, last_index = holder_of(store, key)
                if holder is not None and holder != before:
                    yield holder
                continue
            last_index = page.upto
            if page.events:
                mark.used()
            for event in page.events:
                if event.event == "acquired":
                    # Tokens are the numbers of these events.
                    holder = LeaseHolder(facts_of(event)["holder"], event.token, wall_time(event.at, store.wall_offset_us()))
                    yield holder
            if len(page.events) < PAGE:
                store.wait(mark, math.inf, None, poll_s)


def holders_of(store: Store, key: str) -> list[LeaseHolder]:
    """Who holds a name with capacity, at most 100, by when their leases end."""
    (found,) = (store.execute(Look(None, [key]))).leases
    offset_us = store.wall_offset_us()
    leases = [] if found is None else found.holders or [found.lease]
    return [LeaseHolder(lease.holder, lease.token, wall_time(lease.since, offset_us)) for lease in leases]


def holder_of(store: Store, key: str) -> tuple[LeaseHolder | None, int]:
    """Who holds a lease with no dict, and the number of the newest event at that moment."""
    looked = store.execute(Look(None, [key]))
    (found,) = looked.leases
    if found is None:
        return None, looked.index
    return LeaseHolder(found.lease.holder, found.lease.token, wall_time(found.lease.since, store.wall_offset_us())), looked.index
