"""sentinel's API on a caller's connections: one holder, growing tokens, and the caller's transactions left alone."""

import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import HoldfastError, LeaseHeld, LeaseLost, LockTimeout, ResultNotKept
from holdfast._sync.flows.acquiring import acquire
from holdfast.surfaces import sentinel
from holdfast.surfaces.sentinel.connections import in_transaction
from tests.sentinel_databases import until, until_renewed

KEY = "order_123"


# Single calls


def test_the_second_worker_is_told_at_once_that_the_lease_is_held(conn: Any, get_conn: Callable[[], Any]) -> None:
    first = sentinel.acquire(conn, KEY, ttl_ms=60_000, owner_id="one")
    second = sentinel.acquire(get_conn(), KEY, ttl_ms=60_000)
    assert (first.acquired, second.acquired) == (True, False)
    assert (second.owner_id, second.expires_at, second.fencing_token, second.held_by) == (None, None, None, "one")
    assert second.free_in_ms is not None
    assert 0 < second.free_in_ms <= 60_000
    assert first.expires_at is not None
    assert first.expires_at.tzinfo is not None


def test_tokens_grow_and_owners_differ_from_grant_to_grant(conn: Any) -> None:
    tokens, owners = [], set()
    for _ in range(3):
        result = sentinel.acquire(conn, KEY, owner_id="worker")
        assert result.owner_id is not None
        assert sentinel.release(conn, KEY, result.owner_id).released
        tokens.append(result.fencing_token)
        owners.add(result.owner_id)
    assert tokens == sorted(set(tokens), key=int)  # type: ignore[arg-type]
    assert len(owners) == 3


def test_a_lease_that_ended_is_taken_over_and_its_holder_told(conn: Any, get_conn: Callable[[], Any]) -> None:
    late = sentinel.acquire(conn, KEY, ttl_ms=1)
    other = get_conn()
    taken = sentinel.acquire(other, KEY, ttl_ms=60_000, wait_ms=30_000)
    assert (late.acquired, taken.acquired) == (True, True)
    assert late.owner_id is not None
    assert late.fencing_token is not None
    assert taken.fencing_token is not None
    assert taken.fencing_token > late.fencing_token
    assert not sentinel.heartbeat(conn, KEY, late.owner_id).extended
    assert not sentinel.release(conn, KEY, late.owner_id).released
    assert not sentinel.acquire(conn, KEY).acquired, "the stale holder changed nothing"


def test_a_lease_that_ended_is_not_revived(conn: Any) -> None:
    late = sentinel.acquire(conn, KEY, ttl_ms=1)
    assert late.owner_id is not None
    until(lambda: not sentinel.heartbeat(conn, KEY, late.owner_id or "", ttl_ms=1).extended)
    assert not sentinel.heartbeat(conn, KEY, late.owner_id).success


def test_a_heartbeat_on_another_connection_extends(conn: Any, get_conn: Callable[[], Any]) -> None:
    held = sentinel.acquire(conn, KEY, ttl_ms=30_000)
    beat = sentinel.heartbeat(get_conn(), KEY, held.owner_id or "", 60_000)
    assert (beat.extended, beat.success) == (True, True)
    assert beat.expires_at is not None
    assert held.expires_at is not None
    assert beat.expires_at > held.expires_at


def test_an_owner_may_have_a_name_of_its_own_with_its_token(conn: Any) -> None:
    held = sentinel.acquire(conn, KEY, owner_id="worker-1")
    token = held.fencing_token or 0
    assert not sentinel.heartbeat(conn, KEY, "worker-1").extended, "the name alone may be another grant's"
    assert not sentinel.heartbeat(conn, KEY, "worker-1", fencing_token=token + 1).extended
    assert sentinel.heartbeat(conn, KEY, owner_id="worker-1", fencing_token=token).extended
    assert not sentinel.release(conn, KEY, "worker-2", fencing_token=token).released
    assert sentinel.release(conn, KEY, "worker-1", fencing_token=token).success


def test_an_open_transaction_is_never_committed(conn: Any, get_conn: Callable[[], Any]) -> None:
    sentinel.init_db(conn)
    conn.execute("create table if not exists orders_begun (id integer primary key)")
    conn.commit()
    conn.execute("begin")
    conn.execute("insert into orders_begun values (1)")
    assert sentinel.acquire(conn, KEY, ttl_ms=60_000).acquired
    assert in_transaction(conn)
    conn.rollback()
    other = get_conn()
    assert other.execute("select count(*) from orders_begun").fetchone() == (0,)
    assert sentinel.acquire(other, KEY).acquired, "what was rolled back is free"


def test_the_first_call_creates_what_is_missing_even_in_a_transaction(conn: Any, get_conn: Callable[[], Any]) -> None:
    conn.execute("begin")
    held = sentinel.acquire(conn, KEY, ttl_ms=60_000)
    conn.commit()
    assert sentinel.heartbeat(get_conn(), KEY, held.owner_id or "").extended


@pytest.mark.parametrize("ttl_ms", [0, -5, float("nan")])
def test_a_lease_of_no_time_is_refused(conn: Any, ttl_ms: float) -> None:
    with pytest.raises(ValueError, match="ttl_ms"):
        sentinel.acquire(conn, KEY, ttl_ms)


def test_a_wait_that_is_no_number_is_refused_at_once(conn: Any) -> None:
    with pytest.raises(ValueError, match="wait_ms"):
        sentinel.acquire(conn, KEY, wait_ms=float("nan"))
    with pytest.raises(ValueError, match="wait_ms"):
        sentinel.lease(conn, KEY, wait_ms=float("nan"))


# The context


def test_a_lease_is_held_kept_alive_and_released(conn: Any, get_conn: Callable[[], Any]) -> None:
    threads: list[str] = []

    def heartbeats() -> Any:
        threads.append(threading.current_thread().name)
        return get_conn()

    other = get_conn()
    with sentinel.lease(conn, KEY, ttl_ms=2_000, get_conn=heartbeats) as lease:
        lease.assert_valid()
        assert lease.fencing_token is not None
        until_renewed(other, KEY)
        until_renewed(other, KEY)
        assert lease.is_valid
    assert not lease.is_valid
    assert threads[0] != threading.current_thread().name
    assert sentinel.acquire(other, KEY).acquired


def test_a_lease_needs_no_second_connection_of_the_callers(conn: Any, get_conn: Callable[[], Any]) -> None:
    other = get_conn()
    with sentinel.lease(conn, KEY, ttl_ms=2_000):
        until_renewed(other, KEY)
    assert sentinel.acquire(other, KEY).acquired


def test_a_lease_that_is_held_raises_and_says_by_whom(conn: Any, get_conn: Callable[[], Any]) -> None:
    sentinel.acquire(conn, KEY, ttl_ms=60_000, owner_id="the other")
    with pytest.raises(LeaseHeld, match="'the other'") as raised, sentinel.lease(get_conn(), KEY):
        pass
    assert raised.value.holder == "the other"
    with pytest.raises(LockTimeout), sentinel.lease(get_conn(), KEY, wait_ms=1):
        pass


def test_without_a_heartbeat_it_turns_invalid_in_time(conn: Any, get_conn: Callable[[], Any]) -> None:
    def dead() -> Any:
        raise OSError("no connection is to be had")

    def work() -> None:
        with sentinel.lease(conn, KEY, ttl_ms=300, get_conn=dead) as lease:
            until(lambda: sentinel.acquire(other, KEY, ttl_ms=60_000).acquired)
            assert not lease.is_valid, "two holders"
            with pytest.raises(LeaseLost):
                lease.assert_valid()

    other = get_conn()
    with pytest.raises(LeaseLost):
        work()
    assert not sentinel.acquire(conn, KEY).acquired, "leaving took nothing from the new holder"


def test_a_connection_that_failed_once_is_made_anew(conn: Any, get_conn: Callable[[], Any]) -> None:
    tries: list[bool] = []

    def shaky() -> Any:
        tries.append(True)
        made = get_conn()
        if len(tries) == 1:
            made.close()  # As the server does with a connection it kills.
        return made

    with sentinel.lease(conn, KEY, ttl_ms=2_000, get_conn=shaky) as lease:
        until_renewed(get_conn(), KEY)
        assert lease.is_valid
    assert len(tries) >= 2


def test_leaving_waits_for_no_heartbeat(conn: Any, get_conn: Callable[[], Any]) -> None:
    asked, answered = threading.Event(), threading.Event()

    def hanging() -> Any:
        asked.set()
        answered.wait(60)
        return get_conn()

    with sentinel.lease(conn, KEY, ttl_ms=30_000, get_conn=hanging) as lease:
        lease._holding.hold.renew_at = 0.0  # type: ignore[union-attr]
        lease._keepalive.look_again()  # type: ignore[union-attr]
        assert asked.wait(60)
    assert not answered.is_set(), "the heartbeat hangs, and the body has left"
    assert sentinel.acquire(conn, KEY).acquired
    answered.set()


def test_a_job_that_hangs_is_kept_alive_no_longer_than_it_may(conn: Any, get_conn: Callable[[], Any], caplog: Any) -> None:
    def hang() -> None:
        with sentinel.lease(conn, KEY, ttl_ms=200, get_conn=get_conn, max_hold_ms=250) as lease:
            assert sentinel.acquire(other, KEY, ttl_ms=60_000, wait_ms=60_000).acquired
            assert not lease.is_valid

    other = get_conn()
    with pytest.raises(LeaseLost):
        hang()
    assert "max_hold_s" in caplog.text


def test_inside_a_transaction_a_lease_lives_on_a_connection_apart(conn: Any, get_conn: Callable[[], Any]) -> None:
    sentinel.init_db(conn)
    conn.execute("begin")
    assert conn.execute("select 1").fetchone() == (1,)
    with pytest.raises(HoldfastError, match="get_conn"), sentinel.lease(conn, KEY):
        pass
    with sentinel.lease(conn, KEY, ttl_ms=60_000, get_conn=get_conn):
        assert in_transaction(conn)
        assert not sentinel.acquire(get_conn(), KEY).acquired
    assert in_transaction(conn)
    assert sentinel.acquire(get_conn(), KEY).acquired


def test_a_database_in_memory_has_no_second_connection() -> None:
    conn = sqlite3.connect(":memory:")
    assert sentinel.acquire(conn, KEY, ttl_ms=60_000).acquired
    with pytest.raises(HoldfastError, match="get_conn"), sentinel.lease(conn, "another"):
        pass
    conn.close()


def test_run_checks_before_and_after(conn: Any, get_conn: Callable[[], Any]) -> None:
    with sentinel.lease(conn, KEY, get_conn=get_conn) as lease:
        assert lease.run(lambda held: held.fencing_token) == lease.fencing_token
        with pytest.raises(LeaseLost):
            lease.run(lambda held: held.release())
        assert not lease.release(), "it was given back before"
    with pytest.raises(RuntimeError, match="with"):
        sentinel.lease(conn, KEY).assert_valid()


def test_without_auto_release_it_ends_by_itself(conn: Any, get_conn: Callable[[], Any]) -> None:
    with sentinel.lease(conn, KEY, 500, get_conn, auto_release=False) as lease:
        assert lease.is_valid
    assert not sentinel.acquire(conn, KEY).acquired
    assert sentinel.acquire(conn, KEY, wait_ms=60_000).acquired


def test_a_body_that_raises_gives_the_lease_back(conn: Any, get_conn: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match="out of paint"), sentinel.lease(conn, KEY, ttl_ms=60_000, get_conn=get_conn):
        raise RuntimeError("out of paint")
    assert sentinel.acquire(conn, KEY).acquired


# Fencing


def test_a_fence_keeps_a_stale_worker_from_writing(conn: Any) -> None:
    placeholder = "?" if isinstance(conn, sqlite3.Connection) else "%s"
    conn.execute("create table if not exists orders (id integer primary key, status text, fencing_token bigint)")
    conn.execute("insert into orders values (7, 'new', null)")
    conn.commit()

    def pay(token: int, status: str) -> int:
        fence = sentinel.fence(token, placeholder=placeholder)
        sql = f"update orders set status = {placeholder}, {fence.assignment} where id = {placeholder} and {fence.condition}"  # noqa: S608 - made by us
        count: int = conn.execute(sql, (status, fence.token, 7, fence.token)).rowcount
        conn.commit()
        return count

    stale = sentinel.acquire(conn, KEY, ttl_ms=1)
    fresh = sentinel.acquire(conn, KEY, wait_ms=60_000)
    assert pay(fresh.fencing_token or 0, "paid") == 1
    assert pay(stale.fencing_token or 0, "cancelled") == 0
    assert pay(fresh.fencing_token or 0, "sent") == 1
    assert conn.execute("select status from orders").fetchone() == ("sent",)


def test_a_fence_takes_only_names_of_columns() -> None:
    assert sentinel.fence(5, "orders.token").condition == "coalesce(orders.token, 0) <= %s"
    for bad in ("token; drop table orders", "", "a.b.c"):
        with pytest.raises(ValueError, match="column"):
            sentinel.fence(5, bad)
    with pytest.raises(ValueError, match="placeholder"):
        sentinel.fence(5, placeholder=":token")


# Once


def test_something_that_was_interrupted_before_it_was_called_is_free_again(
    get_conn: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = sentinel.Sentinel(get_conn)

    def interrupted(*given: Any, **more: Any) -> Any:
        acquire(*given, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("holdfast._sync.flows.once.acquire", interrupted)
        with pytest.raises(KeyboardInterrupt):
            keeper.once("order_123", lambda: 1)
    assert keeper.reconcile.reconcile("order_123") is None
    assert keeper.once("order_123", lambda: 2).response == 2


def test_something_whose_response_cannot_be_kept_is_completed_and_not_repeated(get_conn: Callable[[], Any]) -> None:
    calls = list[int]()
    response = object()

    def charge() -> object:
        calls.append(1)
        return response

    keeper = sentinel.Sentinel(get_conn)
    first, again = keeper.once("order_123", charge), keeper.once("order_123", charge)
    assert (first.status, first.response, again.status, again.response, again.cached) == ("completed", response, "completed", None, True)
    assert isinstance(again.exception, ResultNotKept)
    assert calls == [1]


def test_something_happens_once_and_its_response_is_kept(get_conn: Callable[[], Any]) -> None:
    calls: list[int] = []

    def charge(amount: int) -> dict[str, int]:
        calls.append(amount)
        return {"charged": amount}

    keeper = sentinel.Sentinel(get_conn, namespace="payments")
    first = keeper.once("order_123", charge, kwargs={"amount": 5})
    again = sentinel.Sentinel(get_conn, namespace="payments").once("order_123", charge, kwargs={"amount": 5})
    assert (first.success, first.status, first.response, first.cached) == (True, "completed", {"charged": 5}, False)
    assert (again.success, again.response, again.cached) == (True, {"charged": 5}, True)
    assert sentinel.Sentinel(get_conn).once("order_123", charge, kwargs={"amount": 7}).cached is False, "another namespace"
    assert calls == [5, 7]


def test_a_function_that_raises_may_be_called_again(get_conn: Callable[[], Any]) -> None:
    keeper = sentinel.Sentinel(get_conn)
    failed = keeper.once("order_123", lambda: 1 // 0)
    assert (failed.success, failed.status, type(failed.exception)) == (False, "failed", ZeroDivisionError)
    assert keeper.once("order_123", lambda: 1).response == 1


def test_while_somebody_is_at_it_others_are_told(get_conn: Callable[[], Any]) -> None:
    keeper, told = sentinel.Sentinel(get_conn), []

    def slow() -> None:
        told.append(keeper.once("order_123", slow))
        record = keeper.reconcile.reconcile("order_123")
        assert record is not None
        assert record.state == "running"
        with pytest.raises(HoldfastError):
            keeper.reconcile.reset("order_123")

    assert keeper.once("order_123", slow).success
    assert (told[0].status, told[0].execution_alive, told[0].success) == ("executing", True, False)


def test_who_died_at_it_leaves_it_uncertain_until_somebody_looked(get_conn: Callable[[], Any]) -> None:
    keeper = sentinel.Sentinel(get_conn)

    def die() -> None:
        """Lose the lease, as a killed process does: nobody renews, and it ends."""
        with keeper.lent() as client:
            pause = threading.Event()
            while keeper.reconcile.reconcile("order_123").state == "running":  # type: ignore[union-attr]
                pause.wait(0.01)
            assert client.url

    result = keeper.once("order_123", die, ttl_ms=100, hard_ttl_ms=1)
    assert not result.success
    uncertain = keeper.once("order_123", lambda: 1)
    assert (uncertain.status, uncertain.uncertain, uncertain.execution_alive) == ("uncertain", True, False)
    assert keeper.reconcile.force_complete("order_123", "looked, it happened")
    assert keeper.once("order_123", lambda: 1).response == "looked, it happened"
    assert keeper.reconcile.reset("order_123")
    assert keeper.once("order_123", lambda: 1).response == 1
    assert not keeper.reconcile.reset("never heard of")
