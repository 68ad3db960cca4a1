"""The id of a lease is told to its holder alone: who knows it can renew and release the lease."""

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import Lock
from holdfast.client import ControlPlaneClient
from holdfast.commands import Acquire, Break, Command, LeaseName, Leases, Look, Release, Together
from holdfast.errors import LeaseHeld, NotAllowed
from holdfast.records import Lease
from holdfast.stores import Store
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from tests.server.serving import Served
from tests.server.test_tokens import make

SECRET = "the-holders-own"  # noqa: S105 - of a lease of this test
THEIRS = Acquire(None, "k", "them", "another", 60)


@pytest.fixture(params=["default", "acme"])
def stores(request: pytest.FixtureRequest) -> Iterator[tuple[Store, Store]]:
    """The holder's store and another caller's, in one namespace."""
    inner = MemoryStore()
    served = Served(inner)
    tokens = [make(inner, "lease:*:hold,read", namespaces=(request.param,)) for _ in range(2)]
    holder, other = (HttpStore(f"{served.url}/ns/{request.param}", token=token) for token in tokens)
    mine = holder.execute(Acquire(None, "k", "me", SECRET, 60)).lease
    assert (mine.lease_id, mine.is_under(SECRET)) == (SECRET, True)
    yield holder, other
    holder.close()
    other.close()
    served.close()


def seen_by(other: Store) -> list[Lease]:
    """All that another caller may see of the lease."""
    looked = other.execute(Look(None, ["k"])).leases[0]
    in_step = other.execute(Together([Look(None, ["k"])]))[0].leases[0]
    assert looked is not None
    listed, listed_in_step = other.execute(Leases()), other.execute(Together([Leases()]))[0]
    seen = [other.execute(THEIRS).lease, looked.lease, in_step.lease, listed.held[0].leases[0], listed_in_step.held[0].leases[0]]
    refused: list[Command[Any]] = [THEIRS.strictly(), Together([THEIRS])]
    for command in refused:
        with pytest.raises(LeaseHeld) as held:
            other.execute(command)
        assert held.value.lease is not None
        seen.append(held.value.lease)
    return seen


def test_another_caller_sees_who_holds_a_lease_and_not_its_id(stores: tuple[Store, Store]) -> None:
    for lease in seen_by(stores[1]):
        assert (lease.holder, lease.key) == ("me", "k")
        assert SECRET not in repr(lease)
        assert lease.is_under(SECRET), "whoever knows the id can tell"
        assert not lease.is_under("another")


def test_whoever_breaks_a_lease_does_not_learn_its_id(stores: tuple[Store, Store]) -> None:
    holder, other = stores
    with pytest.raises(NotAllowed, match="lease:k:manage"):
        other.execute(Break(None, "k", "why"))
    assert holder.execute(Acquire(None, "k", "me", SECRET, 60)).lease.lease_id == SECRET, "it is held as before"


def test_another_caller_cannot_release_a_lease_by_what_they_see(stores: tuple[Store, Store]) -> None:
    holder, other = stores
    for lease in seen_by(other):
        assert other.execute(Release([LeaseName(None, "k", lease.lease_id)])).held == [False]
    assert not other.execute(THEIRS).lease.is_under("another")
    assert holder.execute(Acquire(None, "k", "me", SECRET, 60)).lease.lease_id == SECRET


def test_a_lock_behind_a_server_works_as_before() -> None:
    served = Served(MemoryStore())
    with ControlPlaneClient(served.url) as client, Lock("k", client=client):
        assert not Lock("k", client=client).try_acquire()
    served.close()
