# Generated from src/holdfast/_async/handles/election.py by tools/unasync.py; do not edit.
"""Election: one leader at a time, and a stream of leaders for everyone else."""

import math
from collections.abc import Generator
from typing import Any, ClassVar, Unpack

from holdfast._sync.flows.acquiring import POLL_S
from holdfast._sync.flows.observing import holder_of, observe
from holdfast._sync.handles.leases import HeldLease, release, take
from holdfast._sync.handles.named import LeaseKind, NamedLease
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.codec.call_fields import POLL_INTERVAL_S
from holdfast.holding.lease_request import LeaseOptions
from holdfast.results import DictResponse, LeaseHolder


@show_options
class Election(NamedLease):
    """An election by name, and one candidate in it: `with Election("cluster", holder="node-a") as leadership:`.

    Leading is holding a lease, renewed in the background: a leader that dies is followed by another after `lease_s`, and one that was
    paused for longer leads no more without knowing. So pass `leadership.token` on to what the leader changes. One handle leads once at a
    time; each candidate makes its own.
    """

    aio: ClassVar[Twin] = Twin()
    kind: ClassVar[LeaseKind] = "election"

    def __init__(self, name: str, *, lease_s: float = 30.0, poll_interval_s: float = POLL_S, **options: Unpack[LeaseOptions]) -> None:
        super().__init__("election", name, lease_s, math.inf, POLL_INTERVAL_S.check(poll_interval_s), **options)
        # The latest, of a thread or a task: twins of this handle share the list.
        self._leaderships: list[Any] = []

    def campaign(self, *, timeout_s: float | None = None) -> HeldLease[Any]:
        """Wait to be leader, and lead until `resign()`; with `timeout_s` raises `LockTimeout` after that long.

        Nothing is cancelled when the leadership is lost: look at its `lost`, or lead in a `with`.
        """
        timeout_s = math.inf if timeout_s is None else timeout_s
        leadership = (take(self._reach(), self._terms, timeout_s, self._poll_s)).keep()
        self._leaderships[:] = [leadership]
        return leadership

    def resign(self) -> DictResponse:
        """Lead no more, so that the next in line can; if this handle does not lead, that is in the answer's `lost`."""
        if not self._leaderships:
            return DictResponse(0, 1)
        return release(self._leaderships.pop())

    @property
    def is_leader(self) -> bool:
        """Whether this handle leads, as far as it knows; does not ask the store."""
        return any(leadership.held for leadership in self._leaderships)

    def leader(self) -> LeaseHolder | None:
        """Who leads at this moment, None if no one does."""
        leader, _ = holder_of(self._reach().store, self._terms.key)
        return leader

    def observe(self) -> Generator[LeaseHolder, None]:
        """Follow who leads: the leader of this moment, then every later one, for ever, each with its larger token."""
        return observe(self._reach().store, self._terms.key, self._poll_s)

    def __enter__(self) -> HeldLease[Any]:
        leadership = super().__enter__()
        self._leaderships[:] = [leadership]
        return leadership
