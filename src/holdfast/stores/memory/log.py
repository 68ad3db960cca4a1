"""The log of events in memory, by topic, and what is dropped from it."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from heapq import heappop, heappush, heapreplace
from itertools import islice, takewhile
from typing import Any, ClassVar

from msgspec import Raw, Struct, json

from holdfast.commands.allowance import Allowance
from holdfast.commands.endings import told
from holdfast.commands.events import RETAINED
from holdfast.records import Event

FLOORS = 100_000
"""Of so many topics it is known exactly up to where their events were dropped."""

NOTHING: Mapping[str, Any] = {}

UNENCODED = frozenset({"key", "keys", "updated_keys", "value"})
"""What an event leaves out where keys and values are the caller's own objects."""


class KeptAny(Struct, frozen=True, gc=False):
    """An event as a command drafted it; its facts become text when they are read."""

    index: int
    at: int
    event: str
    data: Mapping[str, Any]

    def facts(self) -> Mapping[str, Any]:
        return self.data


class KeptOne(Struct, frozen=True, gc=False):
    """An event of one message, in the smallest form there is."""

    index: int
    at: int
    event: str
    id: str
    key: Hashable
    more: Mapping[str, Any]

    def facts(self) -> Mapping[str, Any]:
        return told([self.id], [self.key], self.more)


class KeptClaim(Struct, frozen=True, gc=False):
    """The event of one claim, which there are the most of, without anything that the garbage collector would have to visit."""

    event: ClassVar[str] = "claimed"

    index: int
    at: int
    id: str
    key: Hashable
    holder: str

    def facts(self) -> Mapping[str, Any]:
        return told([self.id], [self.key], {"holder": self.holder})


Kept = KeptAny | KeptOne | KeptClaim


class Log:
    """Every event that is still known, each in the log of its topic."""

    def __init__(self, *, by_reference: bool, keeps: bool = True) -> None:
        self.keeps = keeps
        """Whether any event is kept; without, they are only numbered, and count as dropped at once."""
        self._encode: Callable[[Mapping[str, Any]], bytes] = encode_partly if by_reference else json.encode
        self.latest: int = 0
        self.tidy_at = 0
        """At which number it is time to prune a little."""
        self.topics: dict[str, deque[Kept]] = {}
        # One for each topic: a moment no later than its oldest event's.
        self._ages: list[tuple[int, str]] = []
        # Those with more events than are retained.
        self._over: set[str] = set()
        self._floors: dict[str, int] = {}
        self._forgotten_floor = 0

    def topic(self, topic: str, now: int) -> deque[Kept]:
        """The events of a topic that is about to get one."""
        events = self.topics.get(topic)
        if events is None:
            events = self.topics[topic] = deque()
            heappush(self._ages, (now, topic))
        elif len(events) >= RETAINED:
            self._over.add(topic)
        return events

    def append(self, topic: str, event: str, data: Mapping[str, Any], now: int) -> None:
        self.latest += 1
        if self.keeps:
            self.topic(topic, now).append(KeptAny(self.latest, now, event, data))

    def cut(self, latest: int) -> None:
        """Forget what came after a number: its step was taken back."""
        for events in self.topics.values():
            while events and events[-1].index > latest:
                events.pop()
        self.latest = latest
        # An interrupt may have come between a topic and its age.
        self._ages = sorted((events[0].at if events else 0, topic) for topic, events in self.topics.items())

    def floor(self, topic: str) -> int:
        return self._floors.get(topic, self._forgotten_floor) if self.keeps else self.latest

    def raise_floors(self, number: int, now: int) -> None:
        """Go on above a number, and let every event before count as dropped."""
        self.latest = number - 1
        self.append("store", "copied", NOTHING, now)
        self._forgotten_floor = number
        self._floors.clear()

    def read(self, topic: str, after: int, limit: int, allowance: Allowance) -> tuple[list[Event], int]:
        """Events behind a number, as many as are allowed, and up to where the log was read."""
        kept = self.topics.get(topic, deque())
        first = bisect_right(kept, after, key=lambda event: event.index)
        events = (Event(e.index, topic, e.event, Raw(self._encode(e.facts())), e.at) for e in islice(kept, first, first + limit))
        page = allowance.fitting(events)
        return page, page[-1].index if len(page) == limit or allowance.is_cut else self.latest

    def prune(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        dropped = self._prune_by_age(min(older_than, never_after), limit)
        for topic in list(self._over if keep >= RETAINED else self.topics):
            excess = len(self.topics.get(topic, ())) - keep
            if excess > 0:
                dropped += self._drop(topic, never_after, min(excess, limit - dropped))
            elif keep == RETAINED:
                self._over.discard(topic)
        return dropped

    def _prune_by_age(self, before: int, limit: int) -> int:
        dropped = 0
        while dropped < limit and self._ages and self._ages[0][0] < before:
            topic = self._ages[0][1]
            dropped += self._drop(topic, before, limit - dropped)
            events = self.topics.get(topic)
            if events:
                heapreplace(self._ages, (events[0].at, topic))
                continue
            if events is not None:
                del self.topics[topic]
            heappop(self._ages)
        return dropped

    def _drop(self, topic: str, before: int, limit: int) -> int:
        """Drop the topic's oldest events, as many as may go."""
        events = self.topics.get(topic, deque())
        old = [event.index for event in takewhile(lambda event: event.at < before, islice(events, max(limit, 0)))]
        if old:
            # The floor first: an interrupt must not hide that events are gone.
            self._raise_floor(topic, old[-1])
        for _ in old:
            events.popleft()
        return len(old)

    def _raise_floor(self, topic: str, floor: int) -> None:
        floors = self._floors
        if topic in floors:
            # Not `pop`: an interrupt could come behind that call, and the floor would be gone.
            del floors[topic]
        floors[topic] = floor
        if len(floors) > FLOORS:
            first = next(iter(floors))
            self._forgotten_floor = max(self._forgotten_floor, floors[first])
            del floors[first]


class Answers:
    """What to answer if a command is repeated, the oldest first."""

    def __init__(self) -> None:
        self.notes: dict[str, tuple[int, bytes]] = {}

    def recall(self, command_id: str) -> bytes | None:
        found = self.notes.get(command_id)
        return None if found is None else found[1]

    def record(self, command_id: str, note: bytes, now: int) -> None:
        self.notes[command_id] = (now, note)

    def forget(self, before: int, limit: int) -> int:
        old = [name for name, (at, _) in islice(self.notes.items(), limit) if at < before]
        for name in old:
            del self.notes[name]
        return len(old)


def encode_partly(facts: Mapping[str, Any]) -> bytes:
    """The facts but for those that may be anything."""
    return json.encode({name: fact for name, fact in facts.items() if name not in UNENCODED})
