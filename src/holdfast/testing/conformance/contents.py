"""Something of everything that a store can hold and a copy moves, and all that there is of it."""

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from holdfast.arguments.dict_changes import pace_of
from holdfast.backoff import Backoff
from holdfast.commands import Browse, Configure, Count, Fences, Groups, Leases, Names, Put, Read, Resize, Survey, Write
from holdfast.commands.stats import Stats
from holdfast.rates import Rate
from holdfast.records import Entry, Message, State
from holdfast.records.policies import Lane, Settings
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, item, put, raw, settle, token, write

STATES: tuple[State, ...] = ("buffered", "leased", "ready", "dead", "done")

MOMENTS: Final = frozenset({"position", "start_by", "created_at", "dead_at", "ended_at", "until", "since", "expires_at"})
"""Fields that are seen as spans from now."""
AHEAD: Final = frozenset({"throttled_until", "tat"})
"""And those of which 0 is no moment."""

OWN: Final[dict[type[Struct], frozenset[str]]] = {
    Message: frozenset({"n", "rank"}),
    Settings: frozenset({"last"}),
    Lane: frozenset({"turn", "place", "credit", "open", "wakes", "tat", "last"}),
    Entry: frozenset(),
}
"""Fields that are the store's own affair: the order of messages and groups shows in claims."""


def fill(store: Store, clock: FakeClock) -> None:
    """Put in something of everything that a store can hold."""
    store.execute(Configure("queue", "paused", paused=True, maxsize=10))
    put(store, "in the paused", queue="paused")
    put(store, "plain 1", "plain 2")
    store.execute(Put(JOBS, [item("large", "x" * 20_000), item("urgent", priority=9), item("low", priority=-2)]))
    put(store, "failing", max_attempts=3, dead_letter="graves", priority=20)
    settle(store, claim(store), to="ready", counts=True, error="first")
    settle(store, claim(store), to="ready", counts=True, error="second")
    put(store, "dead", priority=21, key='"dead"')
    settle(store, claim(store), to="dead", error="hopeless")
    put(store, "buried", priority=22, max_attempts=1, dead_letter="graves")
    settle(store, claim(store), to="ready", counts=True, error="too often")
    put(store, "abandoned", priority=23, key='"k"')
    claim(store, lease_s=1, expired_to="back")
    put(store, "behind it", key='"k"')
    fill_policies(store)
    clock.advance(2)
    put(store, "delayed", delay_s=500, metadata=raw({"trace": 1}), labels=("red", "blue"), group="g")
    put(store, "to be started", start_within_s=5_000)
    for number in range(4):
        write(store, f"key {number}", {"n": number})
    write(store, "timed", 1, ttl_s=900)
    write(store, "fenced", 1, fence=token(store))
    write(store, "forgotten", 1, fence=token(store))
    write(store, "forgotten", do="delete")
    store.execute(Configure("dict", "empty"))
    store.execute(Write("limiter", [pace_of("ann", Rate(1, per_s=60.0, burst=5), 3)]))
    store.execute(Resize("gpu", 4))


def fill_policies(store: Store) -> None:
    """Queues with policies, groups with settings of their own, messages that are done, and a key that is unique for a while."""
    again: dict[str, Any] = {"max_attempts": 5, "dead_letter": "graves", "backoff": Backoff(60.0, 2.0, 600.0)}
    limits: dict[str, Any] = {"limit": 9, "rate": Rate(9, per_s=1.0), "group_limit": 2, "group_rate": Rate(9, per_s=1.0)}
    store.execute(Configure("queue", "fair", groups="fair", keep_done_s=600.0, lease_s=40.0, late_to="dead", **again, **limits))
    put(store, "a1", "a2", queue="fair", group="a", labels=("red",))
    settle(store, claim(store, queue="fair"), trace="a traceback")
    put(store, "b1", queue="fair", group="b")
    store.execute(Configure("queue", "fair", group="b", paused=True, weight=4, limit=7, rate=Rate(5, per_s=1.0)))
    store.execute(Configure("queue", "fair", group="c", throttle_s=300.0))
    store.execute(Configure("queue", "strict", groups="strict", group_dead="hold", throttle_s=300.0))
    put(store, "s1", "s2", queue="strict", group="s")
    store.execute(Configure("queue", "stack", order="lifo", aging_s=60.0))
    put(store, "t1", "t2", queue="stack", priority=3)
    store.execute(Configure("queue", "without groups", group="g", weight=3))
    put(store, "once", queue="unique", key='"once"', unique_for_s=700.0)


def contents(store: Store) -> dict[str, Any]:
    """Everything in a store, with spans in the place of moments."""
    now = store.execute(Survey()).now
    found: dict[str, Any] = {"fences": sorted((one.dict, one.key, one.fence) for one in store.execute(Fences()))}
    found["capacities"] = {one.key: one.capacity for one in store.execute(Leases()).held if one.resized}
    for queue in store.execute(Names("queue")).settings:
        stats = replace_ages(store.execute(Count(queue.name)))
        pages = {state: [seen(message, now) for message in store.execute(Browse(queue.name, state=state)).messages] for state in STATES}
        lanes = [seen(lane, now) for lane in store.execute(Groups(queue.name)).lanes]
        found[f"queue {queue.name}"] = (seen(queue, now), stats, pages, lanes)
    for one in store.execute(Names("dict")).settings:
        found[f"dict {one.name}"] = [seen(entry, now) for entry in store.execute(Read(one.name)).entries]
    return found


def replace_ages(stats: Stats) -> Stats:
    """Without what a lease that was given back may be remembered by."""
    return replace(stats, oldest_leased_s=None, average_leased_s=None)


def seen(record: Message | Settings | Lane | Entry, now: int) -> dict[str, Any]:
    """What anybody can see of a record, with spans in the place of moments, and without what a claim that has ended may leave."""
    own = OWN[type(record)]
    found = {name: value for name, value in asdict(record).items() if name not in own}
    if isinstance(record, Message):
        found["history"] = [replace(ending, since=ending.since - now, until=ending.until - now) for ending in record.history]
        found |= {name: bytes(found[name]) for name in ("value", "metadata") if found[name] is not None}
        if record.state != "leased":
            found |= {"holder": "", "token": 0, "since": None, "until": None}
    elif isinstance(record, Entry):
        found["value"] = bytes(record.value)
    spans = {name: found[name] - now for name in MOMENTS & found.keys() if found[name] is not None}
    return found | spans | {name: found[name] - now for name in AHEAD & found.keys() if found[name]}
