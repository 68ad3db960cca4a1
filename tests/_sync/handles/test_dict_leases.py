# Generated from tests/_async/handles/test_dict_leases.py by tools/unasync.py; do not edit.
"""Leases and locks on keys of a dict."""

import math
from typing import Any

import msgspec
import pytest

from holdfast._sync.handles.mapping import Dict
from holdfast.client import ControlPlaneClient
from holdfast.commands.topics import lease_topic
from holdfast.errors import Closed, LeaseHeld, LeaseLost, LockTimeout
from holdfast.results import DictResponse
from holdfast.testing.clock import FakeClock
from tests.runners import Runner, waiting_on

NEVER_POLLS_S = 3_600.0


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shared(client: ControlPlaneClient) -> Dict[Any]:
    return Dict.from_name("shared", client=client)


def test_a_lease_shows_the_value_and_a_growing_token(shared: Dict[Any]) -> None:
    shared.put("alpha", {"score": 1})
    first = shared.acquire_lease("alpha", holder="a")
    assert (first.key, first.holder, first.current_value, first.held) == ("alpha", "a", {"score": 1}, True)
    first.release()
    second = shared.acquire_lease("alpha", holder="b")
    assert second.token > first.token


def test_a_held_lease_is_refused_also_to_the_same_name(shared: Dict[Any]) -> None:
    shared.acquire_lease("alpha", holder="a", lease_s=10)
    with pytest.raises(LeaseHeld, match="held by 'a' for 10 seconds more") as refused:
        shared.acquire_lease("alpha", holder="a")
    assert (refused.value.holder, refused.value.expires_in_s) == ("a", 10.0)


def test_renewing_by_id_keeps_the_lease_and_whoever_holds_it_knows(shared: Dict[Any], clock: FakeClock) -> None:
    lease = shared.acquire_lease("alpha", holder="a", lease_s=60)
    ended_at = lease.expires_at
    clock.advance(30)
    renewed = shared.renew_lease("alpha", lease_id=lease.lease_id, lease_s=120)
    assert (renewed.lease_id, renewed.token) == (lease.lease_id, lease.token)
    clock.advance(90)
    assert lease.held
    assert renewed.held
    assert ended_at is not None
    assert lease.expires_at is not None
    assert (lease.expires_at - ended_at).total_seconds() == 90
    assert renewed.expires_at == lease.expires_at


def test_a_lease_that_ended_is_lost_and_cannot_be_renewed(shared: Dict[Any], clock: FakeClock) -> None:
    lease = shared.acquire_lease("alpha", holder="a", lease_s=10)
    clock.advance(10)
    assert lease.lost
    with pytest.raises(LeaseLost, match="alpha"):
        lease.check()
    with pytest.raises(LeaseLost):
        lease.renew()
    with pytest.raises(LeaseLost):
        shared.renew_lease("alpha", lease_id=lease.lease_id, lease_s=10)


def test_a_holder_trusts_a_lease_for_less_than_it_lasts(shared: Dict[Any], clock: FakeClock) -> None:
    lease = shared.acquire_lease("alpha", holder="a", lease_s=5)
    clock.advance(4.5)
    assert lease.lost
    lease.renew()
    assert lease.held


def test_release_says_what_was_lost_and_raises_nothing(shared: Dict[Any], clock: FakeClock) -> None:
    lease = shared.acquire_lease("alpha", holder="a", lease_s=10)
    assert shared.release_lease("alpha", lease_id=lease.lease_id) == DictResponse(1)
    assert lease.lost
    assert shared.release_lease("alpha", lease_id=lease.lease_id) == DictResponse(0, 1)
    assert lease.release() == DictResponse(0, 1)


def test_a_stale_holder_releases_nothing_of_the_new_one(shared: Dict[Any], clock: FakeClock) -> None:
    stale = shared.acquire_lease("alpha", holder="a", lease_s=10)
    clock.advance(10)
    fresh = shared.acquire_lease("alpha", holder="b", lease_s=10)
    assert stale.release() == DictResponse(0, 1)
    holder = shared.lease_holder("alpha")
    assert holder is not None
    assert (holder.holder, holder.token) == ("b", fresh.token)


def test_a_context_holds_and_gives_back(shared: Dict[Any]) -> None:
    shared.put("alpha", 1)
    with shared.lease("alpha", holder="a") as lease:
        assert lease.current_value == 1
        assert shared.lease_holder("alpha") is not None
    assert shared.lease_holder("alpha") is None
    assert lease.lost


def fail_inside(shared: Dict[Any]) -> None:
    with shared.lease("alpha", holder="a"):
        raise ZeroDivisionError


def test_a_context_gives_back_after_an_error(shared: Dict[Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_inside(shared)
    assert shared.lease_holder("alpha") is None


def test_a_context_is_for_one_body(shared: Dict[Any]) -> None:
    context = shared.lease("alpha", holder="a")
    with context as lease:
        assert context.lease is lease
    with pytest.raises(RuntimeError, match="make another"):
        context.__enter__()


def test_a_context_is_renewed_while_the_body_runs(client: ControlPlaneClient, shared: Dict[Any], clock: FakeClock) -> None:
    with Runner() as runner, shared.lease("alpha", holder="a", lease_s=30) as lease:
        for _ in range(10):
            ends_at = lease.expires_at
            clock.advance(10)
            runner.until(lambda ends_at=ends_at: lease.expires_at != ends_at)  # type: ignore[misc]
        lease.check()


def test_leaving_a_lost_lease_raises(shared: Dict[Any], clock: FakeClock) -> None:
    context = shared.lease("alpha", holder="a", lease_s=10, auto_renew=False)
    context.__enter__()
    clock.advance(10)
    with pytest.raises(LeaseLost, match="alpha"):
        context.__exit__(None, None, None)


def test_an_error_of_the_body_passes_with_a_note_of_the_loss(shared: Dict[Any], clock: FakeClock) -> None:
    context = shared.lease("alpha", holder="a", lease_s=10, auto_renew=False)
    context.__enter__()
    clock.advance(10)
    error = ZeroDivisionError("the body's own")
    context.__exit__(ZeroDivisionError, error, None)
    assert ["is lost" in note for note in error.__notes__] == [True]


def test_an_error_passes_with_a_note_when_the_client_was_closed_meanwhile(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    context = shared.lease("alpha", holder="a")
    context.__enter__()
    client.close()
    error = ZeroDivisionError("the body's own")
    context.__exit__(ZeroDivisionError, error, None)
    assert "is lost: its client was closed" in error.__notes__[0]


def test_giving_back_early_is_not_a_loss(shared: Dict[Any]) -> None:
    with shared.locked("alpha", holder="a") as lock:
        assert lock.release() == DictResponse(1)
        with shared.locked("alpha", holder="b", wait_timeout_s=0) as other:
            assert other.token > lock.token


def test_a_lock_stores_its_default_where_the_key_is_absent(shared: Dict[Any]) -> None:
    with shared.locked("lock", holder="a"):
        assert shared.get("lock") is True
    shared.put("lock", "kept")
    with shared.locked("lock", holder="a", default_value="new") as lock:
        assert lock.current_value == "kept"
    assert shared.get("lock") == "kept"


def test_a_lock_waits_until_it_is_given_back(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    with Runner() as runner:
        with shared.locked("lock", holder="a"):
            waiting = runner.start(shared.locked("lock", holder="b", poll_interval_s=NEVER_POLLS_S).__enter__)
            runner.until(lambda: waiting_on(client.store, lease_topic("shared", '"lock"')) == 1)
        assert (waiting.result()).holder == "b"


def test_a_lock_waits_until_the_lease_ends(client: ControlPlaneClient, shared: Dict[Any], clock: FakeClock) -> None:
    shared.acquire_lease("lock", holder="dead", lease_s=10)
    with Runner() as runner:
        waiting = runner.start(shared.locked("lock", holder="b", poll_interval_s=NEVER_POLLS_S).__enter__)
        runner.until(lambda: waiting_on(client.store, lease_topic("shared", '"lock"')) == 1)
        clock.advance(10)
        assert (waiting.result()).holder == "b"


def test_a_lock_waits_no_longer_than_told(shared: Dict[Any]) -> None:
    with shared.locked("lock", holder="a"):
        with pytest.raises(LockTimeout, match="held by 'a'"):
            shared.locked("lock", holder="a", wait_timeout_s=0.01).__enter__()
        with pytest.raises(TimeoutError):
            shared.locked("lock", holder="a", wait_timeout_s=0).__enter__()


def test_closing_ends_who_waits_for_a_lock(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    shared.acquire_lease("lock", holder="a")
    with Runner() as runner:
        waiting = runner.start(shared.locked("lock", holder="b").__enter__)
        runner.until(lambda: waiting_on(client.store, lease_topic("shared", '"lock"')) == 1)
        client.close()
        with pytest.raises(Closed):
            waiting.result()


def test_there_is_one_leader_until_it_releases(shared: Dict[Any]) -> None:
    leader = shared.try_become_leader("leader", holder="a", lease_s=30)
    assert leader is not None
    assert shared.try_become_leader("leader", holder="a", lease_s=30) is None
    leader.release()
    assert shared.try_become_leader("leader", holder="b", lease_s=30) is not None


def test_a_leader_may_be_renewed_in_the_background(shared: Dict[Any], clock: FakeClock) -> None:
    leader = shared.try_become_leader("leader", holder="a", lease_s=30, auto_renew=True)
    assert leader is not None
    ends_at = leader.expires_at
    with Runner() as runner:
        clock.advance(10)
        runner.until(lambda: leader.expires_at != ends_at)
    leader.release()


def test_dropping_the_dict_ends_its_leases_and_clearing_does_not(shared: Dict[Any]) -> None:
    shared.put("alpha", 1)
    lease = shared.acquire_lease("alpha", holder="a")
    shared.clear()
    lease.renew()
    shared.delete()
    with pytest.raises(LeaseLost):
        lease.renew()


@pytest.mark.parametrize(
    "how",
    [
        {"lease_s": 0},
        {"lease_s": -1.0},
        {"lease_s": math.nan},
        {"lease_s": 10, "renew_interval_s": 10},
        {"renew_interval_s": 0},
        {"max_hold_s": 0},
        {"holder": ""},
    ],
)
def test_bad_terms_are_refused_before_anything_is_sent(shared: Dict[Any], how: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"lease_s|renew_interval_s|max_hold_s|holder"):
        shared.lease("alpha", **({"holder": "a"} | how))
    assert shared.lease_holder("alpha") is None


class Job(msgspec.Struct):
    image: str


def test_a_typed_dict_has_locks_too(client: ControlPlaneClient) -> None:
    jobs = Dict.from_name("jobs", type=Job, client=client)
    with jobs.locked("a", holder="w") as lock:
        assert lock.current_value is None
    with jobs.locked("a", holder="w", default_value=Job("x.png")) as lock:
        assert lock.current_value == Job("x.png")
    with pytest.raises(TypeError, match="is not Job"):
        jobs.locked("a", holder="w", default_value="text")


def test_a_value_that_cannot_be_read_gives_the_lease_back(client: ControlPlaneClient, shared: Dict[Any]) -> None:
    shared.put("alpha", "text")
    with pytest.raises(ValueError, match="does not fit Job"):
        Dict.from_name("shared", type=Job, client=client).acquire_lease("alpha", holder="w")
    assert shared.lease_holder("alpha") is None


def test_the_twin_of_a_lease_holds_the_same(shared: Dict[Any]) -> None:
    lease = shared.acquire_lease("alpha", holder="a")
    twin = lease.aio
    lease.release()
    assert twin.lost
