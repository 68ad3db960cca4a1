"""The lanes of one queue in memory: their messages in line, and which of them are open or asleep."""

from collections.abc import Callable, Mapping
from heapq import nsmallest

from holdfast.commands.transaction import OpenLane
from holdfast.records import Message
from holdfast.records.policies import Lane, LaneOrder
from holdfast.stores.memory.ordered import Ordered

Place = tuple[int, int, int]
"""Level, the highest first, rank and number of a message."""

FOREVER = 2**63


class QueueLanes:
    """What is known of each lane, by name; orders are worked out from that and from the messages."""

    # The store's lock guards all of it.
    __slots__ = ("_asleep", "_lines", "_message", "_open", "known")

    def __init__(self, message: Callable[[int], Message | None]) -> None:
        self._message = message
        self.known: dict[str, Lane] = {}
        self._lines: dict[str, Ordered[Place]] = {}
        self._open: Ordered[tuple[int, int, str]] = Ordered(self._is_open)
        self._asleep: Ordered[tuple[int, str]] = Ordered(self._is_asleep)

    def enter(self, message: Message) -> None:
        """Let a ready message stand in its lane."""
        if message.lane is None or message.rank is None:
            return
        line = self._lines.get(message.lane)
        if line is None:
            name = message.lane
            line = self._lines[name] = Ordered(lambda place: self._stands(name, place))
        line.add((-message.level, message.rank, message.n))

    def heads(self, counts: Mapping[str, int], now: int) -> dict[str, list[Message]]:
        """The first messages of each lane; those that are late are passed over."""
        found = {}
        for name, count in counts.items():
            line = self._lines.get(name)
            if line is None:
                continue
            heads: list[Message] = []
            wanted = count
            while len(heads) < count:
                places = line.first(wanted)
                messages = [message for _, _, n in places if (message := self._message(n)) is not None]
                heads = [message for message in messages if not message.is_late(now)][:count]
                if len(places) < wanted:
                    break
                wanted *= 2
            if heads:
                found[name] = heads
            elif not line.first(1):
                del self._lines[name]
        return found

    def save(self, lane: Lane) -> None:
        """Keep a lane, or forget one that is gone."""
        if lane.is_gone:
            self.known.pop(lane.name, None)
            return
        self.known[lane.name] = lane
        self._order(lane)

    def opened(self, limit: int, now: int) -> list[OpenLane]:
        """The open lanes, by turn."""
        found = []
        for _, _, name in self._open.first(limit):
            heads = self.heads({name: 2}, now).get(name, ())
            found.append(OpenLane(self.known[name], heads[0] if heads else None, heads[1].position if len(heads) > 1 else None))
        return found

    def is_due(self, now: int) -> bool:
        """Whether a lane was to wake."""
        return bool(self._asleep.first(1, (now, chr(0x10FFFF))))

    def find(self, by: LaneOrder, limit: int, prefix: str, after: str | None, now: int) -> list[Lane]:
        if by == "wakes":
            return [self.known[name] for _, name in self._asleep.first(limit, (now, chr(0x10FFFF)))]
        if by == "turn":
            return [self.known[name] for _, _, name in self._open.first(limit)]
        names = [name for name in self.known if name.startswith(prefix) and (after is None or name > after)]
        return [self.known[name] for name in nsmallest(limit, names)]

    def next_wake(self) -> int | None:
        """When the next lane wakes."""
        first = self._asleep.first(1)
        return first[0][0] if first else None

    def rebuild(self) -> None:
        """Forget every message, and work out which lanes are open or asleep again."""
        self._lines.clear()
        self._open.empty()
        self._asleep.empty()
        for lane in self.known.values():
            self._order(lane)

    def _order(self, lane: Lane) -> None:
        if lane.open:
            self._open.add(lane.order)
        if lane.wakes is not None:
            self._asleep.add((lane.wakes, lane.name))

    def _is_open(self, slot: tuple[int, int, str]) -> bool:
        lane = self.known.get(slot[2])
        return lane is not None and lane.open and (lane.turn, lane.place) == slot[:2]

    def _is_asleep(self, slot: tuple[int, str]) -> bool:
        lane = self.known.get(slot[1])
        return lane is not None and lane.wakes == slot[0]

    def _stands(self, name: str, place: Place) -> bool:
        message = self._message(place[2])
        is_there = message is not None and message.state == "ready" and message.lane == name
        return is_there and message is not None and (-message.level, message.rank) == place[:2]
