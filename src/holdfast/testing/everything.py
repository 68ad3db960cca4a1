"""All that can be seen of a store, in a form that can be compared."""

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Raw, Struct, json
from msgspec.structs import astuple

from holdfast.commands import Browse, Browsed, Changes, Count, Counts, Entries, Filter, Groups, Leases, Looked, Names, Read, Stats
from holdfast.commands.topics import queue_topic
from holdfast.errors import HoldfastError
from holdfast.records import Event, State
from holdfast.stores import Store
from holdfast.testing.random_leases import DICTS
from holdfast.testing.random_policies import TENANTS
from holdfast.testing.randomness import BUSY, GRAVE, QUEUES, RECENT, TOPICS

STATES: tuple[State, ...] = ("ready", "leased", "dead", "buffered", "done")
RENAMED = re.compile(r"~\d+")
"""Ends the id of a dead letter whose own was taken: a number of the store's own."""


def plain(answer: Any) -> Any:
    """An answer as lists, dicts and scalars, values byte for byte; of an error its name."""
    if isinstance(answer, HoldfastError):
        return f"raised {type(answer).__name__}"
    if isinstance(answer, Struct):
        fields = {name: plain(getattr(answer, name)) for name in answer.__struct_fields__}
        if isinstance(answer, Browsed | Entries | Looked):
            # The newest event's number, and some of these are about entries past their time, of which each store tells when it will.
            fields["latest"] = fields.pop("index")
        elif isinstance(answer, Stats) and answer.average_leased_s is not None:
            # Moved off the middle between two thousandths, where the last bit of the sum decides.
            fields["average_leased_s"] = round(answer.average_leased_s + 1e-7, 3)
        # How a store writes settings down is its own affair: no client gave it these bytes.
        return fields | {"data": json.decode(answer.data)} if isinstance(answer, Event) and answer.event == "configured" else fields
    if isinstance(answer, Raw):
        answer = bytes(answer).decode()
    if isinstance(answer, str):
        return RENAMED.sub("~", answer)
    if isinstance(answer, dict):
        return {name: plain(part) for name, part in answer.items()}
    return [plain(part) for part in answer] if isinstance(answer, list | tuple) else answer


def everything(store: Store) -> dict[str, Any]:
    """All that can be seen of a store."""
    seen: dict[str, Any] = {"groups": plain(store.execute(Groups(TENANTS)).lanes)}
    for queue in (*QUEUES, GRAVE, BUSY, "morgue", TENANTS):
        for state in STATES:
            seen[f"{state} messages of queue {queue}"] = plain(store.execute(Browse(queue, state=state, limit=10_000)).messages)
        for which in (Filter(), Filter(label="red")):
            seen[f"stats of {queue}, {which}"] = plain(store.execute(Count(queue, which)))
    counts = store.execute(Counts(limit=10_000)).queues
    seen["every count"] = [(one.name, one.stats.total, one.stats.done, plain(one.stats.holders)) for one in counts]
    for name in (*DICTS, *RECENT):
        seen[f"entries of {name}"] = plain(store.execute(Read(name)).entries)
    for kind in ("queue", "dict"):
        seen[f"every {kind}"] = plain(store.execute(Names(kind)).settings)
    for of in (None, *DICTS):
        held = store.execute(Leases(of, limit=10_000)).held
        seen[f"leases of {of}"] = [(*astuple(one)[2:], one.key, [(lease.holder, lease.until) for lease in one.leases]) for one in held]
    for topic in (*TOPICS, queue_topic(TENANTS)):
        events = store.execute(Changes(topic, limit=10_000)).events
        # When a store notices that an entry is past its time is its own affair.
        seen[f"events of {topic}"] = plain([event for event in events if not (event.event == "expired" and topic.startswith("dict:"))])
    return seen


def miscounts(store: Store, queues: Iterable[str]) -> list[str]:
    """Where a store that nobody writes to counts otherwise than its messages are; a sentence each."""
    found = list[str]()
    for queue in queues:
        stats, seen = store.execute(Count(queue)), {state: _how_many(store, queue, state) for state in STATES}
        pairs = {
            # A lease may end between the two.
            "in line or claimed": (stats.ready + stats.delayed + stats.leased, seen["ready"] + seen["leased"]),
            "behind others": (stats.buffered, seen["buffered"]),
            "dead": (stats.dead, seen["dead"]),
            "done": (stats.done, seen["done"]),
        }
        found += [f"queue {queue!r} counts {ours:,} {what} and has {theirs:,}" for what, (ours, theirs) in pairs.items() if ours != theirs]
    return found


def _how_many(store: Store, queue: str, state: State) -> int:
    page = store.execute(Browse(queue, state=state, limit=1_000))
    count = len(page.messages)
    while page.after is not None:
        page = store.execute(Browse(queue, state=state, after=page.after, limit=1_000))
        count += len(page.messages)
    return count
