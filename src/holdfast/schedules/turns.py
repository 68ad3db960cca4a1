"""Which of many processes puts a run, so that the others need not try."""

import hashlib
from collections.abc import Set as AbstractSet

from holdfast.schedules.rules import SECOND

HEAD_START_US = SECOND
"""How long the others wait for the first: it may be dead or paused."""

PEERS_S = 30.0
"""How long it is remembered who there is."""


class Peers:
    """The processes that put runs, this one among them."""

    def __init__(self, me: str, others: AbstractSet[str] = frozenset()) -> None:
        self._mine = _hashed(me)
        self._all = [_hashed(each) for each in others | {me}]

    def put_first(self, name: str, run: int) -> bool:
        """Whether this process is to put the run: who is first differs from run to run, and if one dies only its runs go to others."""
        at = _hashed(f"{name}@{run}")
        return max(map(at.__xor__, self._all)) == at ^ self._mine


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
