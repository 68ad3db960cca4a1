# Generated from tests/_async/handles/test_lease_lists.py by tools/unasync.py; do not edit.
"""Who holds which lock, and taking one from its holder."""

from typing import Any

import pytest

from holdfast._sync.handles.election import Election
from holdfast._sync.handles.lock import Lock
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.rwlock import RWLock
from holdfast._sync.handles.semaphore import Semaphore
from holdfast.client import ControlPlaneClient
from holdfast.errors import LeaseLost
from holdfast.results import LeaseInfo
from holdfast.testing.clock import FakeClock


def shown(found: Any) -> list[tuple[Any, ...]]:
    return [(one.kind, one.name, [holder.holder for holder in one.holders]) for one in found]


def test_locks_are_listed_by_name_with_their_holders(client: ControlPlaneClient, clock: FakeClock) -> None:
    held = Lock("nightly/a", holder="ann", lease_s=30, client=client).acquire()
    Lock("nightly/b", holder="bob", client=client).acquire()
    Lock("other", holder="eve", client=client).acquire()
    Election("nightly/a", holder="node", client=client).campaign()
    found = Lock.list(prefix="nightly/", client=client)
    assert shown(found) == [("lock", "nightly/a", ["ann"]), ("lock", "nightly/b", ["bob"])]
    (grant,) = found[0].holders
    assert grant.since is not None
    assert grant.until is not None
    assert (grant.token, (grant.until - grant.since).total_seconds(), found[0].waiting) == (held.token, 30, None)
    assert shown(Election.list(client=client)) == [("election", "nightly/a", ["node"])]
    assert shown(Lock.list(limit=1, client=client)) == [("lock", "nightly/a", ["ann"])]


def test_semaphores_and_read_write_locks_are_listed_with_their_capacity(client: ControlPlaneClient) -> None:
    for holder in ("ann", "bob"):
        Semaphore("gpu", 2, holder=holder, client=client).acquire()
    RWLock("index", holder="ann", client=client).writing().acquire()
    (gpu,) = Semaphore.list(client=client)
    assert isinstance(gpu, LeaseInfo)
    assert (gpu.capacity, gpu.used, gpu.waiting, sorted(one.holder for one in gpu.holders)) == (2, 2, 0, ["ann", "bob"])
    assert shown(RWLock.list(client=client)) == [("rwlock", "index", ["ann"])]
    (taken,) = RWLock("index", client=client).break_("it hangs")
    assert taken.holder == "ann"


def test_a_lock_is_taken_from_its_holder(client: ControlPlaneClient) -> None:
    held = Lock("report", holder="ann", client=client).acquire()
    assert Lock("report", client=client).break_("it hangs", token=held.token + 1) == []
    (taken,) = Lock("report", client=client).break_("it hangs", token=held.token)
    assert (taken.holder, taken.token) == ("ann", held.token)
    newer = Lock("report", holder="bob", client=client).acquire()
    assert newer.token > held.token
    with pytest.raises(LeaseLost):
        held.renew(30)


def test_leases_on_keys_of_a_dict_are_listed_and_taken(client: ControlPlaneClient) -> None:
    shared: Dict[Any] = Dict("state", client=client)
    for key in (("a", 1), "b"):
        shared.acquire_lease(key, holder="ann")
    assert shown(shared.leases()) == [(None, "b", ["ann"]), (None, ("a", 1), ["ann"])]
    assert len(shared.break_lease("b", "it hangs")) == 1
    assert shown(shared.leases()) == [(None, ("a", 1), ["ann"])]
    assert (shared.acquire_lease("b", holder="bob")).token > 0
