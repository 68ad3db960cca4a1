"""Which of many processes puts a run, so that the others need not try."""

import hashlib
from collections.abc import Set as AbstractSet

from holdfast.schedules.rules import SECOND

HEAD_START_US = SECOND
"""How long the others wait for the first: it may be dead or paused."""

PEERS_S = 30.0
"""How long it is remembered who there is."""


def is_first(me: str, peers: AbstractSet[str], name: str, run: int) -> bool:
    """Whether this process is to put the run; also if it is not among the others, and there are none."""
    return not peers or me == max(peers | {me}, key=lambda each: _rank(each, name, run))


def _rank(process: str, name: str, run: int) -> bytes:
    return hashlib.blake2b(f"{name}@{run}\0{process}".encode(), digest_size=8).digest()
