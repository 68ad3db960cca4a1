"""Checks what a queue's log says about its claims: limits, strict order, rates, shares.

Every function returns what is wrong, in words; an empty list is a log that keeps the promise. They are told nothing by those who claimed,
so they also see what happened under kills and pauses.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, json

from holdfast.commands import Changes
from holdfast.commands.topics import queue_topic
from holdfast.rates import Rate
from holdfast.stores import Store

PAGE = 10_000


class Claiming(Struct, frozen=True):
    """A message that was handed out: when by the store's clock, and to whom."""

    id: str
    group: str
    at: int
    holder: str


class Ended(Struct, frozen=True):
    """A message whose claim ended: `done`, `ready`, `dead`, or `expired`."""

    id: str
    how: str


class Added(Struct, frozen=True):
    """A message that was put."""

    id: str
    group: str


Fact = Added | Claiming | Ended


class ClaimLog:
    """What the log of a queue says, message by message and in its order; read it often enough where the store prunes it."""

    facts: list[Fact]

    def __init__(self, store: Store, queue: str) -> None:
        self.facts = []
        self._store = store
        self._topic = queue_topic(queue)
        self._after = 0
        self._groups: dict[str, str] = {}

    def read(self) -> list[Fact]:
        """Read what is new; return all facts so far."""
        is_more = True
        while is_more:
            page = self._store.execute(Changes(self._topic, after=self._after, limit=PAGE))
            for event in page.events:
                self.facts += self._facts(event.event, event.at, json.decode(event.data))
            is_more, self._after = page.upto < page.latest, page.upto
        return self.facts

    def _facts(self, name: str, at: int, data: dict[str, Any]) -> Iterator[Fact]:
        ids = data.get("ids", ())
        self._groups |= {one: group or "" for one, group in zip(ids, data.get("groups", ()), strict=False)}
        for one in ids:
            match name:
                case "put":
                    yield Added(one, self._groups.get(one, ""))
                case "claimed":
                    yield Claiming(one, self._groups.get(one, ""), at, data.get("holder", ""))
                case "settled":
                    yield Ended(one, data["to"])
                case "expired" if data.get("started", True):
                    yield Ended(one, "expired")


def facts_of(store: Store, queue: str) -> list[Fact]:
    """What the whole log of a queue says."""
    return ClaimLog(store, queue).read()


def over_limit(facts: Sequence[Fact], limit: int | None = None, *, group_limit: int | None = None) -> list[str]:
    """The moments at which more messages were claimed, of the queue or of one group, than may be."""
    claimed: dict[str, str] = {}
    live: Counter[str] = Counter()
    wrong: list[str] = []
    for fact in facts:
        if isinstance(fact, Claiming):
            if fact.id in claimed:
                wrong.append(f"message {fact.id} was handed out twice at once")
                continue
            claimed[fact.id] = fact.group
            live[fact.group] += 1
            if limit is not None and len(claimed) > limit:
                wrong.append(f"{len(claimed)} were claimed at {fact.at}, over {limit}")
            if group_limit is not None and live[fact.group] > group_limit:
                wrong.append(f"{live[fact.group]} of group {fact.group!r} were claimed at {fact.at}, over {group_limit}")
        elif isinstance(fact, Ended) and fact.id in claimed:
            live[claimed.pop(fact.id)] -= 1
    return wrong


def out_of_order(facts: Sequence[Fact]) -> list[str]:
    """Where a strict group had two claims at once, or finished a message before one that was put earlier."""
    wrong = over_limit(facts, group_limit=1)
    lines: dict[str, deque[str]] = defaultdict(deque)
    group_of: dict[str, str] = {}
    for fact in facts:
        if isinstance(fact, Added):
            lines[fact.group].append(fact.id)
            group_of[fact.id] = fact.group
        elif isinstance(fact, Ended) and fact.how in ("done", "dead"):
            line = lines[group_of[fact.id]]
            if line and line[0] == fact.id:
                line.popleft()
            else:
                wrong.append(f"message {fact.id} of group {group_of[fact.id]!r} ended before {line[0] if line else 'nothing'}")
                line.remove(fact.id)
    return wrong


def over_rate(facts: Sequence[Fact], rate: Rate, *, by_group: bool = False) -> list[str]:
    """The windows in which more was handed out than a rate lets through, of the queue or of one group.

    A window has its beginning and not its end, so a rate that is kept lets `count + burst - 1` through in `per_s` seconds at most.
    """
    most = rate.count + rate.burst - 1
    wrong: list[str] = []
    for group, moments in _moments(facts, by_group=by_group).items():
        window: deque[int] = deque()
        for at in moments:
            while window and at - window[0] >= rate.per_s * 1_000_000:
                window.popleft()
            window.append(at)
            if len(window) > most:
                wrong.append(f"{len(window)} of {group!r} in the {rate.per_s} s before {at}, over {most}")
    return wrong


def used_of_rate(facts: Sequence[Fact], rate: Rate) -> float:
    """How much of a rate was used while there was something to hand out, as a share of 1, bursts left out.

    That is until the last message was handed out for the first time. Afterwards only retries are left, which come when they are due.
    """
    (moments,) = _moments(facts, by_group=False).values()
    first: dict[str, int] = {}
    for fact in facts:
        if isinstance(fact, Claiming):
            first.setdefault(fact.id, fact.at)
    last_us = max(first.values())
    span_us, count = last_us - moments[0], sum(at <= last_us for at in moments)
    return (count - rate.burst) * rate.interval_us / span_us if span_us else 1.0


def claims_past_ends(facts: Sequence[Fact], lease_s: float) -> list[int]:
    """For each lease that ended by itself: how many were handed out, by later clocks, before its end was noticed."""
    held: dict[str, int] = {}
    moments: list[int] = []
    passed: list[int] = []
    for fact in facts:
        if isinstance(fact, Claiming):
            held[fact.id] = fact.at
            moments.append(fact.at)
        elif isinstance(fact, Ended) and fact.id in held:
            ended = held.pop(fact.id) + round(lease_s * 1_000_000)
            if fact.how == "expired":
                passed.append(sum(at > ended for at in reversed(moments[-10_000:])))
    return passed


def _moments(facts: Sequence[Fact], *, by_group: bool) -> dict[str, list[int]]:
    moments: dict[str, list[int]] = defaultdict(list)
    for fact in facts:
        if isinstance(fact, Claiming):
            moments[fact.group if by_group else ""].append(fact.at)
    return {group: sorted(times) for group, times in moments.items()}


def shares(facts: Sequence[Fact]) -> Counter[str]:
    """How many messages of each group were handed out."""
    return Counter(fact.group for fact in facts if isinstance(fact, Claiming))


def unfair(facts: Sequence[Fact], weights: Mapping[str, int]) -> list[str]:
    """Where a round of groups that all had enough to do did not give each its weight, and how often each was served instead."""
    served = [fact.group for fact in facts if isinstance(fact, Claiming)]
    size = sum(weights.values())
    wrong: list[str] = []
    for start in range(0, len(served) - size + 1, size):
        counts = Counter(served[start : start + size])
        if counts != Counter(weights):
            wrong.append(f"the round from claim {start} on gave {dict(counts)}")
    return wrong
