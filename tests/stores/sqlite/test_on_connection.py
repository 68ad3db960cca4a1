"""A store on the caller's own connection: it shares the caller's transaction and never ends it."""

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import Claim, Configure, Item, Put
from holdfast.connect import connect
from holdfast.errors import QueueFull, StoreError, StoreFull, StoreMoved, StoreUnavailable
from holdfast.stores import Store
from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED, ack, claim, put, waiting
from tests.stores.sqlite.test_group_commit import Failing


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "app.db", isolation_level=None)
    connection.execute("create table orders (id text primary key)")
    yield connection
    connection.close()


@pytest.fixture
def store(connection: sqlite3.Connection) -> Iterator[Store]:
    store = connect(connection)
    yield store
    store.close()


def elsewhere(tmp_path: Path) -> list[str]:
    """What anyone else sees."""
    store = connect(f"sqlite:///{tmp_path}/app.db")
    try:
        return waiting(store)
    finally:
        store.close()


def orders(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("select id from orders")]


def test_an_idle_connection_is_committed(tmp_path: Path, connection: sqlite3.Connection, store: Store) -> None:
    put(store, "a")
    assert not connection.in_transaction
    assert elsewhere(tmp_path) == ["a"]


def test_an_open_transaction_is_never_committed(tmp_path: Path, connection: sqlite3.Connection, store: Store) -> None:
    put(store, "before")
    connection.execute("begin")
    connection.execute("insert into orders values ('o')")
    put(store, "a")
    assert connection.in_transaction
    assert waiting(store) == ["before", "a"]
    connection.execute("rollback")
    assert orders(connection) == []
    assert elsewhere(tmp_path) == ["before"]


def test_what_was_put_appears_with_the_callers_commit(tmp_path: Path, connection: sqlite3.Connection, store: Store) -> None:
    connection.execute("begin")
    connection.execute("insert into orders values ('o')")
    put(store, "a")
    connection.execute("commit")
    assert orders(connection) == ["o"]
    assert elsewhere(tmp_path) == ["a"]


def test_an_ack_vanishes_with_the_callers_rollback(connection: sqlite3.Connection, store: Store) -> None:
    put(store, "a")
    claimed = claim(store)
    connection.execute("begin")
    assert ack(store, claimed) == [True]
    connection.execute("rollback")
    assert ack(store, claimed) == [True]
    assert ack(store, claimed) == [False]


def test_tables_made_in_a_transaction_that_is_rolled_back_are_made_again(connection: sqlite3.Connection, store: Store) -> None:
    connection.execute("begin")
    put(store, "a")
    connection.execute("rollback")
    assert "holdfast_messages" not in str(connection.execute("select name from sqlite_master").fetchall())
    connection.execute("begin")
    put(store, "b")
    connection.execute("commit")
    put(store, "c")
    assert waiting(store) == ["b", "c"]


def test_a_refused_command_leaves_the_callers_work_as_it_was(connection: sqlite3.Connection, store: Store) -> None:
    store.execute(Configure("queue", "jobs", maxsize=1))
    connection.execute("begin")
    connection.execute("insert into orders values ('o')")
    put(store, "a")
    with pytest.raises(QueueFull):
        put(store, "b")
    assert connection.in_transaction
    connection.execute("insert into orders values ('p')")
    connection.execute("commit")
    assert orders(connection) == ["o", "p"]
    assert waiting(store) == ["a"]


def test_a_command_that_fails_in_the_middle_leaves_nothing_but_the_callers_work(connection: sqlite3.Connection, store: Store) -> None:
    put(store, "a")
    connection.execute("begin")
    connection.execute("insert into orders values ('o')")
    with pytest.raises(RuntimeError, match="in the middle"):
        store.execute(Failing())
    connection.execute("commit")
    assert orders(connection) == ["o"]
    assert connection.execute("select count(*) from holdfast_events").fetchone() == (1,)


def test_a_full_database_is_said_and_the_callers_next_transaction_works(connection: sqlite3.Connection, store: Store) -> None:
    put(store, "a")
    pages = connection.execute("pragma page_count").fetchone()[0]
    connection.execute(f"pragma max_page_count = {pages}")
    connection.execute("begin")
    with pytest.raises(StoreFull):
        store.execute(Put("jobs", [Item(str(n), Raw(b'"' + b"x" * 1000 + b'"')) for n in range(100)]))
    if connection.in_transaction:
        connection.execute("rollback")
    connection.execute("pragma max_page_count = 1000000")
    put(store, "b")
    assert waiting(store) == ["a", "b"]


def test_a_connection_left_idle_by_python_is_committed(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "app.db")  # Begins a transaction by itself before the caller's own writes.
    connection.execute("create table orders (id text primary key)")
    store = connect(connection)
    put(store, "a")
    assert elsewhere(tmp_path) == ["a"]
    connection.execute("insert into orders values ('o')")
    put(store, "b")
    assert elsewhere_reads(tmp_path) == ["a"]
    connection.rollback()
    assert waiting(store) == ["a"]
    store.close()
    connection.close()


def elsewhere_reads(tmp_path: Path) -> list[str]:
    """As `elsewhere`, while somebody writes: only a reader can look then."""
    reader = sqlite3.connect(tmp_path / "app.db")
    try:
        return [row[0] for row in reader.execute("select id from holdfast_messages order by n")]
    finally:
        reader.close()


def as_dict(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> dict[str, object]:
    return dict(zip([column[0] for column in cursor.description], row, strict=True))


@pytest.mark.parametrize("factory", [sqlite3.Row, as_dict])
def test_the_callers_row_factory_does_not_matter_and_stays(connection: sqlite3.Connection, factory: Any) -> None:
    connection.row_factory = factory
    store = connect(connection)
    put(store, "a")
    assert [message.id for message in claim(store)] == ["a"]
    assert connection.row_factory is factory
    store.close()


def test_a_text_factory_that_would_change_what_is_read_is_refused(connection: sqlite3.Connection) -> None:
    connection.text_factory = bytes
    with pytest.raises(ValueError, match="text_factory"):
        connect(connection)


def test_a_database_in_memory_is_a_store_too() -> None:
    connection = sqlite3.connect(":memory:")
    store = connect(connection)
    put(store, "a")
    assert ack(store, claim(store)) == [True]
    assert waiting(store) == []
    store.close()
    connection.close()


if sys.version_info >= (3, 12):

    def test_a_connection_without_autocommit_is_always_in_the_callers_transaction(tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "app.db", autocommit=False)
        store = connect(connection)
        put(store, "a")
        connection.rollback()
        put(store, "b")
        connection.commit()
        assert waiting(store) == ["b"]
        store.close()
        connection.close()

    def test_a_connection_with_autocommit_is_committed(tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "app.db", autocommit=True)
        store = connect(connection)
        put(store, "a")
        assert elsewhere(tmp_path) == ["a"]
        store.close()
        connection.close()


def test_closing_the_store_leaves_the_connection_open(connection: sqlite3.Connection) -> None:
    store = connect(connection)
    put(store, "a")
    store.close()
    assert connection.execute("select id from holdfast_messages").fetchall() == [("a",)]


def test_tasks_are_told_to_connect_to_the_file(store: Store) -> None:
    with pytest.raises(StoreError, match="connect to the file"):
        store.for_tasks()


def test_a_copied_file_is_refused_here_too(connection: sqlite3.Connection, store: Store) -> None:
    put(store, "a")
    connection.execute("insert into holdfast_meta values ('moved', 'sqlite:////new.db')")
    with pytest.raises(StoreMoved) as caught:
        put(connect(connection), "b")
    assert caught.value.url == "sqlite:////new.db"


def test_another_process_waits_for_the_callers_transaction_and_then_writes(
    tmp_path: Path, connection: sqlite3.Connection, store: Store
) -> None:
    put(store, "a")
    with Program(OPENED.replace("{path}", "{path}/app.db"), tmp_path) as other:
        connection.execute("begin immediate")
        put(store, "b")
        other.say("put('c')")
        connection.execute("commit")
        assert other.hear() == "[True]"
        assert waiting(store) == ["a", "b", "c"]


def test_a_transaction_left_open_too_long_is_named_to_other_processes(tmp_path: Path, connection: sqlite3.Connection, store: Store) -> None:
    put(store, "a")
    impatient = "import holdfast.stores.sqlite.file as file\nfile.BUSY_S = 0.05\n" + OPENED.replace("{path}", "{path}/app.db")
    with Program(impatient, tmp_path) as other:
        connection.execute("begin immediate")
        assert other.ask("put('b')").startswith(StoreUnavailable.__name__)
        connection.execute("commit")
        assert other.ask("put('b')") == "[True]"


def test_an_idle_connection_wakes_a_claim_that_waits_in_another_process(
    tmp_path: Path, connection: sqlite3.Connection, store: Store
) -> None:
    waiting_there = (
        OPENED.replace("{path}", "{path}/app.db")
        + """
from holdfast._sync.flows.claiming import claim as claim_with_patience

def claim_soon():
    # Without a poll: only a wake-up can end the wait in time.
    return claim_with_patience(store, Claim("jobs", lease_s=60.0), timeout_s=100.0, poll_s=1000.0)[0].id

def wait_in_thread():
    thread = threading.Thread(target=lambda: answers.append(claim_soon()))
    thread.start()
    while not store.waiters.waiting("queue:jobs"):
        pass
    return thread

answers = []
"""
    )
    store.execute(Claim("jobs"))
    with Program(waiting_there, tmp_path) as other:
        other.ask("(thread := wait_in_thread()) and None")
        put(store, "a")
        assert other.ask("[thread.join(), answers][1]") == "['a']"
