# Generated from tests/_async/handles/test_lock.py by tools/unasync.py; do not edit.
"""Lock: a name that one holder has at a time."""

import pytest

from holdfast._sync.handles.lock import Lock
from holdfast.client import ControlPlaneClient
from holdfast.commands.topics import lease_topic
from holdfast.errors import LockTimeout
from holdfast.testing.clock import FakeClock
from tests.runners import Runner, waiting_on

TOPIC = lease_topic(None, '["lock","reports"]')


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def inside(lock: Lock, seen: list[int]) -> None:
    with lock as held:
        seen.append(held.token)
        held.check()


def test_one_is_inside_and_the_next_has_a_larger_token(client: ControlPlaneClient) -> None:
    lock = Lock("reports", client=client, poll_interval_s=3_600.0)
    seen: list[int] = []
    with Runner() as runner:
        with lock as held:
            others = [runner.start(inside, lock, seen) for _ in range(3)]
            runner.until(lambda: waiting_on(client.store, TOPIC) == 3)
            assert seen == []
        for other in others:
            other.result()
    assert seen == sorted(seen)
    assert seen[0] > held.token
    assert lock.holding() is None


def test_who_holds_it_can_be_asked(client: ControlPlaneClient) -> None:
    with Lock("reports", holder="a", client=client) as held:
        found = Lock("reports", client=client).holding()
        assert found is not None
        assert (found.holder, found.token) == ("a", held.token)
        assert held.key == "reports"


def test_it_is_not_reentrant_by_name(client: ControlPlaneClient) -> None:
    with Lock("reports", holder="a", client=client):
        with pytest.raises(LockTimeout, match="lock 'reports' is held by 'a'"):
            Lock("reports", holder="a", client=client, wait_timeout_s=0).acquire()
        assert Lock("reports", holder="a", client=client).try_acquire() is None


def test_acquired_it_is_renewed_until_it_is_released(client: ControlPlaneClient, clock: FakeClock) -> None:
    lock = Lock("reports", lease_s=30, client=client)
    held = lock.acquire()
    ends_at = held.expires_at
    with Runner() as runner:
        clock.advance(10)
        runner.until(lambda: held.expires_at != ends_at)
    held.release()
    again = lock.try_acquire()
    assert again is not None
    assert again.token > held.token


def test_a_dead_holders_lock_comes_free(client: ControlPlaneClient, clock: FakeClock) -> None:
    with ControlPlaneClient.on(client.store) as dying:
        Lock("reports", lease_s=30, client=dying).acquire()
        dying.keepalive.close()
        with Runner() as runner:
            seen: list[int] = []
            waiting = runner.start(inside, Lock("reports", client=client, poll_interval_s=3_600.0), seen)
            runner.until(lambda: waiting_on(client.store, TOPIC) == 1)
            clock.advance(30)
            waiting.result()
            assert len(seen) == 1


def test_locks_of_other_names_do_not_meet(client: ControlPlaneClient) -> None:
    with Lock("a", client=client), Lock("b", client=client, wait_timeout_s=0):
        pass


def test_the_twin_for_tasks_is_the_same_lock(client: ControlPlaneClient) -> None:
    lock = Lock("reports", holder="a", client=client)
    assert (lock.aio.name, lock.aio.holder) == ("reports", "a")
