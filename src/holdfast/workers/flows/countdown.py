"""What follows from the ends of some jobs of a flow: which nodes are done, which may begin, and which still wait."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Raw, Struct, json

from holdfast.commands import Change, Item
from holdfast.workers.flows.nodes import FlowNode
from holdfast.workers.flows.state import Done, Failed, Pending, done_key, failed_key, left_key, pending_key
from holdfast.workers.steps.rows import Report

EDGES: Final = 1_000
"""How many followers of nodes one step counts down."""

STEP_BYTES: Final = 4 * 2**20
"""How much one step puts, and records, unless one thing alone is larger."""


class End(Struct, frozen=True):
    """A job of a flow that has ended."""

    mark: int
    number: int
    pending: Pending
    report: Report

    @property
    def is_done(self) -> bool:
        """Whether it has a result."""
        return self.report.state == "done" and self.report.error is None

    @property
    def change(self) -> Change:
        """What records it."""
        pending, report = self.pending, self.report
        if self.is_done:
            return Change(done_key(self.number), value=Raw(json.encode(Done(pending.name, pending.child_id, report.result))))
        return failure(self.number, pending, report.error or report.state)


def failure(number: int, pending: Pending, reason: str) -> Change:
    """What records that a node has no result."""
    text = f"job {pending.child_id} of queue {pending.queue!r} has no result: {reason}"
    return Change(failed_key(number), value=Raw(json.encode(Failed(pending.name, pending.queue, pending.child_id, text))))


def some_of(ends: Sequence[End], nodes: Mapping[int, FlowNode]) -> list[End]:
    """As many of the ends as one step takes, at least one."""
    edges = size = 0
    for place, end in enumerate(ends):
        edges += len(nodes[end.number].followers)
        size += len(end.report.result or b"")
        if place and (edges > EDGES or size > STEP_BYTES):
            return list(ends[:place])
    return list(ends)


def part_of(end: End, followers: Sequence[int], cursor: tuple[int, int] | None) -> range:
    """The places of the followers that one step counts down behind an end."""
    start = cursor[1] if cursor is not None and cursor[0] == end.mark else 0
    return range(start, min(len(followers), start + EDGES))


class Countdown:
    """Counts the followers of ended nodes down, until a step has as much as it takes."""

    def __init__(self, left: dict[int, int], cursor: tuple[int, int] | None) -> None:
        self._left = left
        self.cursor = cursor
        """The mark of the end whose followers were not all counted down, and how many were."""
        self.puts: dict[int, Item] = {}
        self.ended: list[End] = []
        self._touched: set[int] = set()
        self._size = 0

    def take(self, end: End, followers: Sequence[int], make: Callable[[int], Item]) -> bool:
        """Count down behind one end; False if the step has enough before that is finished."""
        part = part_of(end, followers, self.cursor)
        stop = part.stop
        for place in part:
            if not self._count(followers[place], make):
                stop = place
                break
        if stop < len(followers):
            self.cursor = (end.mark, stop)
            return False
        self.cursor = None
        self.ended.append(end)
        return True

    def _count(self, number: int, make: Callable[[int], Item]) -> bool:
        if self._left[number] == 1:
            item = make(number)
            self._size += len(item.value)
            if self._size > STEP_BYTES and self.puts:
                return False
            self.puts[number] = item
        self._left[number] -= 1
        self._touched.add(number)
        return True

    @property
    def changes(self) -> list[Change]:
        """What records all of it, but for what is put."""
        ended = [change for end in self.ended for change in (Change(pending_key(end.number), "delete"), end.change)]
        left = [Change(left_key(number), value=Raw(json.encode(self._left[number]))) for number in sorted(self._touched - set(self.puts))]
        return ended + left
