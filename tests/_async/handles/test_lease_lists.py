"""Who holds which lock, and taking one from its holder."""

from typing import Any

import pytest

from holdfast._async.handles.election import AsyncElection
from holdfast._async.handles.lock import AsyncLock
from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.rwlock import AsyncRWLock
from holdfast._async.handles.semaphore import AsyncSemaphore
from holdfast.client import ControlPlaneClient
from holdfast.errors import LeaseLost
from holdfast.results import LeaseInfo
from holdfast.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


def shown(found: Any) -> list[tuple[Any, ...]]:
    return [(one.kind, one.name, [holder.holder for holder in one.holders]) for one in found]


async def test_locks_are_listed_by_name_with_their_holders(client: ControlPlaneClient, clock: FakeClock) -> None:
    held = await AsyncLock("nightly/a", holder="ann", lease_s=30, client=client).acquire()
    await AsyncLock("nightly/b", holder="bob", client=client).acquire()
    await AsyncLock("other", holder="eve", client=client).acquire()
    await AsyncElection("nightly/a", holder="node", client=client).campaign()
    found = await AsyncLock.list(prefix="nightly/", client=client)
    assert shown(found) == [("lock", "nightly/a", ["ann"]), ("lock", "nightly/b", ["bob"])]
    (grant,) = found[0].holders
    assert grant.since is not None
    assert grant.until is not None
    assert (grant.token, (grant.until - grant.since).total_seconds(), found[0].waiting) == (held.token, 30, None)
    assert shown(await AsyncElection.list(client=client)) == [("election", "nightly/a", ["node"])]
    assert shown(await AsyncLock.list(limit=1, client=client)) == [("lock", "nightly/a", ["ann"])]


async def test_semaphores_and_read_write_locks_are_listed_with_their_capacity(client: ControlPlaneClient) -> None:
    for holder in ("ann", "bob"):
        await AsyncSemaphore("gpu", 2, holder=holder, client=client).acquire()
    await AsyncRWLock("index", holder="ann", client=client).writing().acquire()
    (gpu,) = await AsyncSemaphore.list(client=client)
    assert isinstance(gpu, LeaseInfo)
    assert (gpu.capacity, gpu.used, gpu.waiting, sorted(one.holder for one in gpu.holders)) == (2, 2, 0, ["ann", "bob"])
    assert shown(await AsyncRWLock.list(client=client)) == [("rwlock", "index", ["ann"])]
    (taken,) = await AsyncRWLock("index", client=client).break_("it hangs")
    assert taken.holder == "ann"


async def test_a_lock_is_taken_from_its_holder(client: ControlPlaneClient) -> None:
    held = await AsyncLock("report", holder="ann", client=client).acquire()
    assert await AsyncLock("report", client=client).break_("it hangs", token=held.token + 1) == []
    (taken,) = await AsyncLock("report", client=client).break_("it hangs", token=held.token)
    assert (taken.holder, taken.token) == ("ann", held.token)
    newer = await AsyncLock("report", holder="bob", client=client).acquire()
    assert newer.token > held.token
    with pytest.raises(LeaseLost):
        await held.renew(30)


async def test_leases_on_keys_of_a_dict_are_listed_and_taken(client: ControlPlaneClient) -> None:
    shared: AsyncDict[Any] = AsyncDict("state", client=client)
    for key in (("a", 1), "b"):
        await shared.acquire_lease(key, holder="ann")
    assert shown(await shared.leases()) == [(None, "b", ["ann"]), (None, ("a", 1), ["ann"])]
    assert len(await shared.break_lease("b", "it hangs")) == 1
    assert shown(await shared.leases()) == [(None, ("a", 1), ["ann"])]
    assert (await shared.acquire_lease("b", holder="bob")).token > 0
