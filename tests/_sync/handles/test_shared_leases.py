# Generated from tests/_async/handles/test_shared_leases.py by tools/unasync.py; do not edit.
"""Semaphores, read-write locks and fair locks: several hold a name, or wait for it in a line."""

import math

import pytest

from holdfast._sync.handles.lock import Lock
from holdfast._sync.handles.rwlock import RWLock
from holdfast._sync.handles.semaphore import Semaphore
from holdfast._sync.handles.shared import SharedLease
from holdfast.client import ControlPlaneClient
from holdfast.commands import Changes
from holdfast.errors import LineFull, LockTimeout, Refused
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from tests.runners import Runner


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def in_line(store: Store) -> int:
    """How many wait in line at this moment."""
    return sum(store.waiters.waiting(topic) for topic in store.waiters.topics() if topic.startswith("line:"))


def inside(lock: SharedLease | Lock, seen: list[tuple[str, int]]) -> None:
    with lock as held:
        seen.append((lock.holder, held.token))


def test_as_many_as_the_capacity_are_inside_each_under_its_own_token(client: ControlPlaneClient) -> None:
    one, two, three = (Semaphore("gpu", 2, holder=holder, client=client) for holder in ("one", "two", "three"))
    with one as first, two as second:
        assert first.token < second.token
        assert [holder.holder for holder in one.holders()] == ["one", "two"]
        assert three.try_acquire() is None
        with pytest.raises(LockTimeout, match=r"semaphore 'gpu' is held by 'one' and 1 more for 60 seconds more, and did not"):
            three.acquire(wait_timeout_s=0)
    with three as third:
        assert third.token > second.token
    assert three.holders() == []


def test_waiters_are_served_in_the_order_of_arrival(client: ControlPlaneClient) -> None:
    seen: list[tuple[str, int]] = []
    with Runner() as runner:
        with Semaphore("gpu", 1, client=client):
            others = []
            for number in range(8):
                lock = Semaphore("gpu", 1, holder=str(number), client=client)
                others.append(runner.start(inside, lock, seen))
                runner.until(lambda number=number: in_line(client.store) == number + 1)  # type: ignore[misc]
        for other in others:
            other.result()
    assert [holder for holder, _ in seen] == [str(number) for number in range(8)]
    assert [token for _, token in seen] == sorted(token for _, token in seen)


def test_a_fair_lock_serves_in_turn_and_is_fair_to_all_or_none(client: ControlPlaneClient) -> None:
    seen: list[tuple[str, int]] = []
    with Runner() as runner:
        with Lock("reports", holder="first", client=client, fair=True):
            other = runner.start(inside, Lock("reports", holder="next", client=client, fair=True), seen)
            runner.until(lambda: in_line(client.store) == 1)
            with pytest.raises(Refused, match="fair=True"):
                Lock("reports", client=client).acquire()
            with pytest.raises(LineFull):
                Lock("reports", client=client, fair=True, max_waiters=1).acquire()
            holding = Lock("reports", client=client, fair=True).holding()
            assert holding is not None
            assert holding.holder == "first"
        other.result()
    assert [holder for holder, _ in seen] == ["next"]
    with Lock("reports", client=client), pytest.raises(Refused, match="fair=True"):
        Lock("reports", client=client, fair=True).acquire()


def test_readers_are_inside_together_and_a_writer_alone(client: ControlPlaneClient) -> None:
    lock = RWLock("index", client=client)
    seen: list[tuple[str, int]] = []
    with Runner() as runner:
        with lock.reading(), lock.reading():
            assert len(lock.holders()) == 2
            assert lock.writing().try_acquire() is None
            writer = runner.start(inside, RWLock("index", holder="writer", client=client).writing(), seen)
            runner.until(lambda: in_line(client.store) == 1)
            assert lock.reading().try_acquire() is None, "a waiting writer lets no later reader in"
            reader = runner.start(inside, RWLock("index", holder="late reader", client=client).reading(), seen)
            runner.until(lambda: in_line(client.store) == 2)
        writer.result()
        reader.result()
    assert [holder for holder, _ in seen] == ["writer", "late reader"]


def test_whoever_stops_waiting_gives_up_the_place(client: ControlPlaneClient) -> None:
    held = Semaphore("gpu", 1, client=client).acquire()
    with pytest.raises(LockTimeout):
        Semaphore("gpu", 1, client=client).acquire(wait_timeout_s=0.001)
    held.release()
    assert Semaphore("gpu", 1, client=client).try_acquire() is not None, "nobody is waited for"


def test_resizing_lets_in_those_who_wait(client: ControlPlaneClient) -> None:
    semaphore = Semaphore("gpu", 1, client=client)
    seen: list[tuple[str, int]] = []
    with Runner() as runner, semaphore:
        other = runner.start(inside, Semaphore("gpu", 1, client=client), seen)
        runner.until(lambda: in_line(client.store) == 1)
        assert semaphore.resize(2) == 1
        other.result()
    assert len(seen) == 1
    assert semaphore.resize(None) == 0


def test_a_handle_that_can_never_be_granted_is_refused_when_it_is_made(client: ControlPlaneClient) -> None:
    with pytest.raises(ValueError, match="weight must be at most the capacity of 2, not 3"):
        Semaphore("gpu", 2, weight=3, client=client)
    with pytest.raises(ValueError, match="capacity must be a whole number from 1"):
        Semaphore("gpu", 0, client=client)
    with pytest.raises(ValueError, match="in_line_s must"):
        RWLock("index", in_line_s=math.nan, client=client)
    with pytest.raises(TypeError, match="fair must be True or False"):
        Lock("reports", fair="yes", client=client)  # type: ignore[arg-type]


def test_a_share_is_renewed_while_its_holder_is_inside(client: ControlPlaneClient, clock: FakeClock) -> None:
    with Semaphore("gpu", 1, lease_s=10.0, client=client) as held:
        clock.advance(6)
        held.renew()
        clock.advance(6)
        assert Semaphore("gpu", 1, client=client).try_acquire() is None
        page = client.store.execute(Changes('lease::["semaphore","gpu"]'))
        assert [event.event for event in page.events] == ["acquired"]
