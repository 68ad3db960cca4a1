# Generated from tests/_async/handles/test_together_locks.py by tools/unasync.py; do not edit.
"""Locks, semaphores, read-write locks and limiters in one atomic step."""

import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Rate
from holdfast._sync.handles.limiter import Limiter
from holdfast._sync.handles.lock import Lock
from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.rwlock import RWLock
from holdfast._sync.handles.semaphore import Semaphore
from holdfast._sync.handles.together import Together
from holdfast.errors import LeaseHeld, LeaseLost, RateLimited, Refused
from holdfast.testing.clock import FakeClock


@pytest.fixture(params=["memory", "sqlite", "lmdb", "postgres", "redis", "http"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_locks_and_shares_are_taken_with_the_rest_and_given_back_with_the_rest(client: ControlPlaneClient) -> None:
    lock, gpu, index = Lock("a", client=client), Semaphore("gpu", 2, client=client), RWLock("index", client=client)
    with Together(client) as step:
        taken = [step.acquire_lock(one) for one in (lock, gpu, index.writing())]
        step.put("jobs", 1)
    held = [one.result for one in taken]
    assert [one.held for one in held] == [True, True, True]
    assert len({one.token for one in held}) == 3
    assert (lock.try_acquire(), index.reading().try_acquire()) == (None, None)
    with Together(client) as step:
        given_back = [step.release_lock(one) for one in held]
        step.put("jobs", 2)
    assert [one.result for one in given_back] == [True, True, True]
    assert [one.lost for one in held] == [True, True, True]
    assert (lock.holding(), gpu.holders(), index.holders()) == (None, [], [])
    assert Queue.from_name("jobs", client=client).length() == 2


def test_what_others_hold_refuses_the_whole_step(client: ControlPlaneClient) -> None:
    lock, full = Lock("a", holder="other", client=client), Semaphore("gpu", 1, client=client)
    free = Lock("free", client=client)
    with lock, full:
        for one in (lock, full):
            step = Together(client)
            step.acquire_lock(free)
            step.acquire_lock(one)
            step.put("jobs", 1)
            with pytest.raises(LeaseHeld):
                step.__exit__(None, None, None)
    assert free.holding() is None
    assert Queue.from_name("jobs", client=client).length() == 0


def test_a_step_happens_only_while_the_lock_that_it_renews_is_held(client: ControlPlaneClient) -> None:
    lock, gpu = Lock("a", lease_s=10.0, client=client), Semaphore("gpu", 2, lease_s=10.0, client=client)
    for one in (lock, gpu):
        held = one.acquire()
        one.break_("stuck")
        for late in (Together.renew_lock, Together.release_lock):
            step = Together(client)
            late(step, held)
            step.put("jobs", 1)
            with pytest.raises(LeaseLost):
                step.__exit__(None, None, None)
    assert Queue.from_name("jobs", client=client).length() == 0


def test_renewing_in_a_step_says_how_long_it_is_held(client: ControlPlaneClient) -> None:
    held = Lock("a", lease_s=10.0, client=client).acquire()
    with Together(client) as step:
        renewed = step.renew_lock(held, lease_s=100.0)
        step.put("jobs", 1)
    assert renewed.result is held
    ((seen,),) = [one.holders for one in Lock.list(client=client)]
    assert seen.since is not None
    assert seen.until == seen.since + timedelta(seconds=100)
    held.release()


def test_a_rate_decides_about_a_whole_step(client: ControlPlaneClient, clock: FakeClock) -> None:
    limiter = Limiter("api", Rate(60, per_s=60.0, burst=3), client=client)
    with Together(client) as step:
        used = step.acquire_rate(limiter, key=("tenant", 1), cost=2)
        step.put("jobs", 1)
    assert used.result.updated
    step = Together(client)
    step.acquire_rate(limiter, key=("tenant", 1), cost=2)
    step.put("jobs", 2)
    with pytest.raises(RateLimited) as refused:
        step.__exit__(None, None, None)
    assert refused.value.due_in_s == 1.0
    clock.advance(1)
    limiter.acquire(key=("tenant", 1), cost=2)
    assert Queue.from_name("jobs", client=client).length() == 1


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/own.db") as made:
        yield made


def test_a_transaction_of_the_caller_renews_and_releases_but_takes_no_lock(own: ControlPlaneClient, tmp_path: Path) -> None:
    lock = Lock("a", client=own)
    held = lock.acquire()
    connection = sqlite3.connect(tmp_path / "own.db")
    with Together(own, connection) as step:
        step.renew_lock(held, lease_s=1_000.0)
    connection.rollback()
    assert held.trusted_for_s <= 60, "the longer time was rolled back"
    with pytest.raises(ValueError, match="your transaction would hide"):
        Together(own, connection).acquire_lock(lock)
    with Together(own, connection) as step:
        step.release_lock(held)
    connection.commit()
    connection.close()
    assert lock.holding() is None


def test_a_refused_step_goes_on_renewing_what_it_would_have_given_back(own: ControlPlaneClient) -> None:
    held = Lock("a", client=own).acquire()
    step = Together(own)
    step.release_lock(held)
    step.expect(Dict.from_name("state", client=own), "k", "there")
    with pytest.raises(Refused):
        step.__exit__(None, None, None)
    assert len(own.keepalive) == 1
    assert held.held
    held.release()
    with pytest.raises(LeaseLost):
        Together(own).release_lock(held)


def test_locks_of_a_step_that_is_interrupted_are_given_back(own: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def execute(self, command: Any) -> Any:
            own.store.execute(command)
            raise KeyboardInterrupt

    lock = Lock("a", client=own)
    step = Together(own)
    taken = step.acquire_lock(lock)
    monkeypatch.setattr(own, "store_on", lambda _: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        step.__exit__(None, None, None)
    assert lock.holding() is None
    with pytest.raises(RuntimeError, match="not committed"):
        _ = taken.result


def test_locks_and_limiters_of_another_store_are_refused(own: ControlPlaneClient) -> None:
    with ControlPlaneClient("memory://") as other:
        held = Lock("a", client=other).acquire()
        parts: list[Callable[[Together], Any]] = [
            lambda step: step.acquire_lock(Lock("b", client=other)),
            lambda step: step.renew_lock(held),
            lambda step: step.acquire_rate(Limiter("c", Rate(1, per_s=1.0), client=other)),
        ]
        for add in parts:
            with pytest.raises(ValueError, match="another store"):
                add(Together(own))
        held.release()


def test_a_finished_step_takes_no_lock(own: ControlPlaneClient) -> None:
    step = Together(own)
    with step:
        pass
    with pytest.raises(RuntimeError, match="is finished"):
        step.acquire_lock(Lock("a", client=own))
