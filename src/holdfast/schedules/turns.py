"""Which of many processes puts a run, so that the others need not try."""

import hashlib
from collections.abc import Set as AbstractSet

from holdfast.schedules.rules import SECOND

HEAD_START_US = SECOND
"""How long each waits for the one before it: that one may be dead or paused."""

LAST_TURN = 5
"""How many are waited for at most."""

PEERS_S = 30.0
"""How long it is remembered who there is."""


class Peers:
    """The processes that put runs, this one among them."""

    def __init__(self, me: str, others: AbstractSet[str] = frozenset()) -> None:
        self._mine = _hashed(me)
        self._all = [_hashed(each) for each in others | {me}]
        # By schedule the run that was asked for last, and the turn. Counting those before costs by how many there are.
        self._turns: dict[str, tuple[int, int]] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._all)

    def turn_at(self, name: str, run: int) -> int:
        """When this process is to put the run, if it is still due then: who is first differs from run to run.

        Each waits for those before it, so that a slow store is not asked by all of them at once.
        """
        known = self._turns.get(name)
        if known is not None and known[0] == run:
            return known[1]
        at = _hashed(f"{name}@{run}")
        before = sum(map((at ^ self._mine).__lt__, map(at.__xor__, self._all)))
        turn_at = run + min(before, LAST_TURN) * HEAD_START_US
        self._turns[name] = run, turn_at
        return turn_at


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
