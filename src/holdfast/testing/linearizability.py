"""Whether what clients saw of one key can be explained by some order of their operations.

The search is that of Wing and Gong, with Lowe's memory of states already tried. Operations on different keys do not touch each other,
so a history is checked a key at a time; keep a key's history under a thousand operations.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

from msgspec import Struct

NEVER_ANSWERED = float("inf")


class Operation(Struct, frozen=True, gc=False):
    """One call on one key, from when it was made until it was answered."""

    called: float
    answered: float
    """`NEVER_ANSWERED` if its outcome is unknown: then it took effect at any later time, or never."""
    kind: str
    argument: Hashable = None
    answer: Hashable = None


Step = Callable[[Any, Operation], tuple[bool, Any]]
"""From a state and an operation to whether its answer is right there, and the state after it."""


def register_step(state: Any, operation: Operation) -> tuple[bool, Any]:
    """A dict's key: `read`, `put`, and `cas` with (expected, new), answered with whether it was written."""
    unknown = operation.answered == NEVER_ANSWERED
    if operation.kind == "read":
        return unknown or operation.answer == state, state
    if operation.kind == "put":
        return True, operation.argument
    expected, new = cast("tuple[Hashable, Hashable]", operation.argument)
    return unknown or operation.answer == (state == expected), new if state == expected else state


def capacity_step(capacity: int) -> Step:
    """A lease with capacity and no line: `acquire` of (id, weight) and `release` of an id, answered with whether it was granted or held."""

    def step(state: Any, operation: Operation) -> tuple[bool, Any]:
        granted = cast("frozenset[tuple[str, int]]", state)
        unknown = operation.answered == NEVER_ANSWERED
        if operation.kind == "release":
            left = frozenset(share for share in granted if share[0] != operation.argument)
            return unknown or operation.answer == (len(left) < len(granted)), left
        share = cast("tuple[str, int]", operation.argument)
        fits = sum(weight for _, weight in granted) + share[1] <= capacity
        return unknown or operation.answer == fits, granted | {share} if fits else granted

    return step


def is_linearizable(history: Sequence[Operation], initial: Hashable = None, step: Step = register_step) -> bool:
    """Whether some order that keeps the order of real time explains every answer."""
    operations = sorted(history, key=lambda operation: operation.called)
    answered = sum(1 << place for place, operation in enumerate(operations) if operation.answered != NEVER_ANSWERED)
    tried: set[tuple[int, Hashable]] = set()
    open_ends = [(0, initial)]
    while open_ends:
        done, state = open_ends.pop()
        if done & answered == answered:
            return True
        for place in _possible_next(operations, done):
            is_right, after = step(state, operations[place])
            found = (done | 1 << place, after)
            if is_right and found not in tried:
                tried.add(found)
                open_ends.append(found)
    return False


def _possible_next(operations: Sequence[Operation], done: int) -> list[int]:
    """The operations that may come next: made before any other that is left was answered."""
    left = [place for place in _from_first_left(done, len(operations)) if not done >> place & 1]
    possible = []
    first_answer = NEVER_ANSWERED
    for place in left:
        if operations[place].called > first_answer:
            break
        possible.append(place)
        first_answer = min(first_answer, operations[place].answered)
    return possible


def _from_first_left(done: int, count: int) -> range:
    """The places from the first that is not done; what lies before it need not be looked at."""
    first = (~done & (done + 1)).bit_length() - 1
    return range(first, count)
