"""The waiters of one topic in order: which is woken next, and which one polls."""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from holdfast.stores.waiting.waiters import Mark, Waiters

STUCK_S: Final = 1.0
"""How late a keeper is whose event loop must be blocked or closed."""

WokenBy = Literal["hint", "time"]


class Line:
    """Who waits on one topic. Every method runs under the lock of the Waiters and returns whose alarms to ring after it."""

    __slots__ = ("asleep", "due_at", "heard", "keeper", "listeners", "members")

    def __init__(self) -> None:
        self.asleep: OrderedDict[Mark, None] = OrderedDict()
        self.listeners: list[Callable[[int], None]] = []
        self.heard: object = object()
        self.members: int = 0
        # Wakes at due_at, for all. While somebody sleeps, the keeper is one of them, or somebody awake was woken by time: that one brings
        # the next due moment when it sleeps again, or wakes another who will.
        self.keeper: Mark | None = None
        self.due_at: float = math.inf

    def lie_down(self, mark: "Mark", due_at: float, due_now: float) -> None:
        is_keeper_stuck = self.due_at + STUCK_S < due_now
        if self.keeper is None or due_at < self.due_at or is_keeper_stuck:
            self.keeper, self.due_at = mark, due_at
        self.asleep[mark] = None
        if mark.woken_by is not None:
            # It was the oldest when it was woken, and somebody else was faster.
            self.asleep.move_to_end(mark, last=False)
            mark.woken_by = None

    def wake(self, count: int, woken_by: WokenBy) -> list["Mark"]:
        woken: list[Mark] = []
        while len(woken) < count and self.asleep:
            mark, _ = self.asleep.popitem(last=False)
            mark.woken_by, mark.heard = woken_by, self.heard
            woken.append(mark)
        return woken + self._hand_over()

    def wake_by_time(self, keeper: "Mark") -> None:
        del self.asleep[keeper]
        keeper.woken_by, keeper.heard = "time", self.heard
        self.keeper = None

    def get_up(self, mark: "Mark") -> list["Mark"]:
        if mark not in self.asleep:
            return []
        del self.asleep[mark]
        mark.heard = self.heard
        return self._hand_over()

    def _hand_over(self) -> list["Mark"]:
        """Give a role left behind, with its due moment, to the youngest: hints will take the longest to reach it."""
        if self.keeper is None or self.keeper in self.asleep:
            return []
        self.keeper = next(reversed(self.asleep), None)
        return [] if self.keeper is None or self.due_at == math.inf else [self.keeper]


class Listening(Struct, eq=False):
    """A listener that gets the hints on a topic until it is called. One object, because a server has one for each of many topics."""

    waiters: "Waiters"
    topic: str
    line: Line
    told: Callable[[int], None]

    def __call__(self) -> None:
        self.waiters._stop_listening(self.topic, self.line, self.told)  # noqa: SLF001 - as with a mark
