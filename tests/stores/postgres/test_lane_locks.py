"""Groups on PostgreSQL while transactions are open: what is put and not committed yet is never left behind, and nobody waits for long.

Every interleaving is made by hand, with its negative control: random load does not find these faults.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from holdfast.commands import Claim, Configure, Groups, Item, Move, Put, Settle
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import JOBS, raw
from tests.postgres import own_postgres_url
from tests.testing.broken_sql import broken

Connection = psycopg.Connection[Any]

LOCKED_ALONE = r"pg_try_advisory_xact_lock\(lane_lock\([ls]\.\w+, l\.name\)\)"
TAKEN_FOR_EMPTY = rf"    if {LOCKED_ALONE} then\n +head := [^;]*;\n    else\n      head := now;\n    end if;\n"
PAUSED = r"    perform pg_advisory_xact_lock(4711);\n\g<0>"
IN_ONE_STATEMENT = """    head := (
      select case when t.locked then first_in_lane(l.queue, l.name, now) else now end
      from (select pg_advisory_xact_lock(4711), pg_try_advisory_xact_lock(lane_lock(l.queue, l.name)) as locked offset 0) as t
    );
"""
FULL = r"\(\(l\)\.live >= lane_limit\(l, s\) or "
PASSES_FIRST = r"(where m\.ctid = case when )s\.rules & 2 = 0(\n)"


@pytest.fixture
def url() -> str:
    return own_postgres_url()


@contextmanager
def opened(url: str) -> Iterator[tuple[PostgresStore, Connection]]:
    """A store, and a connection of a caller who has a transaction open."""
    store = PostgresStore(url)
    with psycopg.connect(store.address.conninfo) as connection:
        yield store, connection
    store.close()


def configure(store: Store, **settings: Any) -> None:
    store.execute(Configure("queue", JOBS, **settings))


def put(store: Any, message_id: str, group: str = "a", **options: Any) -> None:
    store.execute(Put(JOBS, [Item(message_id, raw(1), group=group, **options)]))


def claimed(store: Any, limit: int = 1, **options: Any) -> list[Message]:
    messages: list[Message] = store.execute(Claim(JOBS, "me", 60.0, limit, **options)).messages
    return messages


def ids(messages: list[Message]) -> list[str]:
    return [message.id for message in messages]


def left_after_a_claim(url: str) -> list[str]:
    """What is claimed once a put commits that was open while the last of its group was claimed."""
    with opened(url) as (store, connection):
        configure(store, groups="fair")
        put(store, "first")
        put(store.within(connection), "second")
        assert ids(claimed(store)) == ["first"]
        connection.commit()
        return ids(claimed(store))


def left_after_a_settle(url: str) -> list[str]:
    """The same, where the last of a full group was settled meanwhile."""
    with opened(url) as (store, connection):
        configure(store, groups="fair", group_limit=1)
        put(store, "first")
        (first,) = claimed(store)
        put(store.within(connection), "second")
        store.execute(Settle([first.receipt]))
        connection.commit()
        return ids(claimed(store))


def left_after_an_empty_claim(url: str) -> list[str]:
    """The same, where a claim found the group empty before."""
    with opened(url) as (store, connection):
        configure(store, groups="fair")
        put(store, "first")
        put(store.within(connection), "second")
        assert ids(claimed(store)) == ["first"]
        assert claimed(store) == []
        connection.commit()
        return ids(claimed(store))


def left_after_a_move(url: str) -> list[str]:
    """What is claimed of a message that an open transaction moves into a group, while the last of the group is claimed."""
    with opened(url) as (store, connection):
        configure(store, groups="fair")
        put(store, "first")
        store.execute(Put("graves", [Item("second", raw(1), group="a")]))
        assert store.within(connection).execute(Move("graves", "ready", state="ready", to_queue=JOBS)).ids == ["second"]
        assert ids(claimed(store)) == ["first"]
        connection.commit()
        return ids(claimed(store))


def left_after_a_batch(url: str) -> list[str]:
    """The same, where the last of two groups were claimed at once."""
    with opened(url) as (store, connection):
        configure(store, groups="fair")
        put(store, "first")
        put(store, "other", "b")
        put(store.within(connection), "second")
        assert ids(claimed(store, 2)) == ["first", "other"]
        connection.commit()
        return ids(claimed(store))


def left_after_a_batch_is_settled(url: str) -> list[str]:
    """The same, where the last of two full groups were settled at once."""
    with opened(url) as (store, connection):
        configure(store, groups="strict")
        put(store, "first")
        put(store, "other", "b")
        messages = claimed(store, 2)
        put(store.within(connection), "second")
        store.execute(Settle([message.receipt for message in messages]))
        connection.commit()
        return ids(claimed(store))


LEFT = [
    left_after_a_claim,
    left_after_a_settle,
    left_after_an_empty_claim,
    left_after_a_move,
    left_after_a_batch,
    left_after_a_batch_is_settled,
]


@pytest.mark.parametrize("left", LEFT)
def test_what_is_put_while_its_group_seems_empty_is_not_left_behind(url: str, left: Any) -> None:
    assert left(url) == ["second"]


@pytest.mark.parametrize("left", LEFT)
def test_control_without_the_lock_of_its_lane_it_would_be(url: str, left: Any) -> None:
    with broken(url, LOCKED_ALONE, "true"):
        assert left(url) == []


def left_after_a_commit_in_between(url: str, text: str) -> list[str]:
    """What is claimed of a put that commits after a claim began to take its group for empty, and before the claim has the lock."""
    with (
        broken(url, TAKEN_FOR_EMPTY, text),
        opened(url) as (store, connection),
        psycopg.connect(store.address.conninfo, autocommit=True) as gate,
    ):
        configure(store, groups="fair")
        put(store, "first")
        put(store.within(connection), "second")
        gate.execute("select pg_advisory_lock(4711)")
        with ThreadPoolExecutor(1) as pool:
            claiming = pool.submit(claimed, store)
            assert somebody_waits(gate)
            connection.commit()
            gate.execute("select pg_advisory_unlock(4711)")
            assert ids(claiming.result(60)) == ["first"]
        return ids(claimed(store))


def test_what_commits_before_the_lock_is_seen_after_it(url: str) -> None:
    assert left_after_a_commit_in_between(url, PAUSED) == ["second"]


def test_control_a_look_in_the_statement_of_the_lock_would_not_see_it(url: str) -> None:
    assert left_after_a_commit_in_between(url, IN_ONE_STATEMENT) == []


def somebody_waits(connection: Connection, done: Callable[[], bool] = lambda: False) -> bool:
    """Whether somebody comes to wait for a lock, before it is done."""
    waiting = "select exists (select from pg_locks where not granted)"
    while not done():
        if connection.execute(waiting).fetchone() == (True,):
            return True
    return False


def is_settle_held_up(url: str) -> bool:
    """Whether a put into a full group, in a transaction that is still open, makes a settle of the group wait."""
    with opened(url) as (store, connection), psycopg.connect(store.address.conninfo, autocommit=True) as watch:
        configure(store, groups="fair", group_limit=1)
        put(store, "first")
        (first,) = claimed(store)
        put(store.within(connection), "second")
        with ThreadPoolExecutor(1) as pool:
            settling = pool.submit(store.execute, Settle([first.receipt]))
            waits = somebody_waits(watch, settling.done)
            connection.commit()
            assert settling.result(60).held == [True]
        assert ids(claimed(store)) == ["second"]
        return waits


def test_an_open_put_into_a_full_group_holds_up_no_settle(url: str) -> None:
    assert not is_settle_held_up(url)


def test_control_a_put_that_locks_a_full_group_would(url: str) -> None:
    with broken(url, FULL, "(false or "):
        assert is_settle_held_up(url)


def claimed_past_a_locked_head(url: str) -> list[str]:
    """What is claimed while the first of a strict group is somebody else's."""
    with opened(url) as (store, connection):
        configure(store, groups="strict")
        for message_id, group in (("first", "a"), ("second", "a"), ("other", "b")):
            put(store, message_id, group)
        connection.execute("select set_config('search_path', quote_ident(%s), true)", (store.address.schema,))
        connection.execute("select from messages where id = 'first' for update")
        found = [*ids(claimed(store, 2)), *ids(claimed(store)), *ids(claimed(store, 5))]
        connection.rollback()
        return [*found, *ids(claimed(store))]


def test_the_first_of_a_strict_group_is_not_passed_over(url: str) -> None:
    assert claimed_past_a_locked_head(url) == ["other", "first"]


def test_control_passed_over_it_would_be_overtaken(url: str) -> None:
    with broken(url, PASSES_FIRST, r"\1true\2"):
        assert "second" in claimed_past_a_locked_head(url)


def test_a_group_that_is_in_an_open_transaction_keeps_no_claim_waiting(url: str) -> None:
    with opened(url) as (store, connection):
        configure(store, groups="strict")
        put(store, "first")
        assert store.within(connection).execute(Move(JOBS, "gone", ids=["first"])).ids == ["first"]
        found = store.execute(Claim(JOBS, "me", 60.0))
        assert found.messages == []
        assert found.due_in_s == pytest.approx(0.1)
        connection.rollback()
        assert ids(claimed(store)) == ["first"]


def test_a_group_that_is_being_put_into_does_not_stand_before_others(url: str) -> None:
    with opened(url) as (store, connection):
        configure(store, groups="fair")
        put(store, "a")
        put(store, "b", "b")
        put(store.within(connection), "late", "a")
        assert [ids(claimed(store)) for _ in range(3)] == [["a"], ["b"], []]
        put(store, "c", "c")
        assert ids(claimed(store)) == ["c"]
        connection.rollback()
        assert claimed(store) == []
        assert store.execute(Groups(JOBS)).lanes == []


def claimed_of_a_dead_letter(url: str) -> list[str]:
    """What is claimed of a message that an open transaction buries where another begins to group meanwhile."""
    with opened(url) as (store, connection), psycopg.connect(store.address.conninfo, autocommit=True) as watch:
        put(store, "dead")
        store.execute(Put("graves", [Item("other", raw(1))]))
        (dead,) = claimed(store)
        store.within(connection).execute(Settle([dead.receipt], "dead", dead_letter="graves"))
        with ThreadPoolExecutor(1) as pool:
            grouping = pool.submit(store.execute, Configure("queue", "graves", groups="fair"))
            somebody_waits(watch, grouping.done)
            connection.commit()
            grouping.result(60)
        return ids(store.execute(Claim("graves", "me", 60.0, 5)).messages)


def test_a_dead_letter_is_not_left_behind_where_its_queue_begins_to_group(url: str) -> None:
    assert claimed_of_a_dead_letter(url) == ["other", "dead"]


def test_control_buried_in_a_queue_that_is_not_shared_it_would_be(url: str) -> None:
    with broken(url, r"perform lock_object\('queue', p\.place, false\)", "perform"):
        assert claimed_of_a_dead_letter(url) == ["other"]
