"""Sizes, ages and holders of a queue."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from holdfast.records import NEVER, Message, State, seconds_in

HELD_SEEN: Final = 1_000
"""So many claims are looked at for who holds them and since when."""

PART_SEEN: Final = 100
"""So many are counted in turn of what is due and of what is not, then ten times as many, until one of them has no more."""


class Place(Struct, frozen=True, gc=False):
    """Behind a message of a queue: its state, and where it stands in the order of that."""

    state: State
    cursor: tuple[int | str, ...]


class Stats(Struct, frozen=True, gc=False):
    """Sizes, ages and holders of a queue at one moment."""

    ready: int = 0
    delayed: int = 0
    buffered: int = 0
    leased: int = 0
    dead: int = 0
    oldest_ready_s: float | None = None
    oldest_leased_s: float | None = None
    average_leased_s: float | None = None
    oldest_dead_s: float | None = None
    holders: dict[str, int] = {}
    """How much each has claimed. Where more than 1,000 are claimed, stores may look at 1,000 of them only, here and for the two ages.

    Then these are fewer in sum than `leased`.
    """
    done: int = 0
    """Those that are kept for a while after they were done; no part of the total."""
    after: Place | None = None
    """Where to go on counting what a filter finds: there are at least so many. `Queue.stats` goes on by itself."""

    @property
    def total(self) -> int:
        return self.ready + self.delayed + self.buffered + self.leased + self.dead

    def joined(self, more: "Stats") -> "Stats":
        """With those that were counted behind these."""
        leased = self.leased + more.leased
        held_s = self.leased * (self.average_leased_s or 0.0) + more.leased * (more.average_leased_s or 0.0)
        return Stats(
            ready=self.ready + more.ready,
            delayed=self.delayed + more.delayed,
            buffered=self.buffered + more.buffered,
            leased=leased,
            dead=self.dead + more.dead,
            oldest_ready_s=_older(self.oldest_ready_s, more.oldest_ready_s),
            oldest_leased_s=_older(self.oldest_leased_s, more.oldest_leased_s),
            average_leased_s=held_s / leased if leased else None,
            oldest_dead_s=_older(self.oldest_dead_s, more.oldest_dead_s),
            holders=dict(Counter(self.holders) + Counter(more.holders)),
            done=self.done + more.done,
            after=more.after,
        )


def _older(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


class Tally(Struct, frozen=True, gc=False):
    """How many messages of a queue are in each state, and since when."""

    ready: int = 0
    delayed: int = 0
    """Those of the ready ones that are not due yet."""
    first_position: int | None = None
    """Of the ready ones."""
    buffered: int = 0
    leased: int = 0
    """While their leases last."""
    ended: int = 0
    """Leased ones whose lease has ended: the next claim finds them."""
    first_since: int | None = None
    mean_since: float | None = None
    """Of leases that last."""
    dead: int = 0
    first_dead_at: int | None = None
    holders: dict[str, int] = {}
    done: int = 0

    def stats(self, now: int, after: Place | None = None) -> Stats:
        """The same as people ask for it: what is not held counts as ready, and moments are ages."""
        return Stats(
            ready=self.ready - self.delayed + self.ended,
            delayed=self.delayed,
            buffered=self.buffered,
            leased=self.leased,
            dead=self.dead,
            oldest_ready_s=None if self.first_position is None or self.first_position > now else seconds_in(now - self.first_position),
            oldest_leased_s=None if self.first_since is None else seconds_in(now - self.first_since),
            average_leased_s=None if self.mean_since is None else (now - self.mean_since) / 1_000_000,
            oldest_dead_s=None if self.first_dead_at is None else seconds_in(now - self.first_dead_at),
            holders=self.holders,
            done=self.done,
            after=after,
        )


def size_of_part(total: int, part: Callable[[int], int], rest: Callable[[int], int]) -> int:
    """How large a part of so many is, exactly; costs by the smaller of the part and the rest, each of which counts up to a bound."""
    bound = PART_SEEN
    while True:
        seen = part(bound)
        if seen < bound:
            return seen
        others = rest(bound)
        if others < bound:
            return total - others
        bound *= 10


def tally_of(messages: Iterable[Message], now: int) -> Tally:
    """The same of these messages, of which no more than one is kept at a time."""
    counts, holders = Counter[str](), Counter[str]()
    delayed, since, firsts = 0, 0, dict[str, int]()
    for message in messages:
        state = "held" if message.held_at(now) else message.state
        moment = {"ready": message.position, "held": message.since, "dead": message.dead_at}.get(state)
        counts[state] += 1
        firsts[state] = min(firsts.get(state, NEVER), moment or 0)
        delayed += state == "ready" and message.position > now
        if state == "held":
            holders[message.holder] += 1
            since += message.since
    return Tally(
        ready=counts["ready"],
        delayed=delayed,
        first_position=firsts.get("ready"),
        buffered=counts["buffered"],
        leased=counts["held"],
        ended=counts["leased"],
        first_since=firsts.get("held"),
        mean_since=since / counts["held"] if counts["held"] else None,
        dead=counts["dead"],
        first_dead_at=firsts.get("dead"),
        holders=dict(holders),
        done=counts["done"],
    )
