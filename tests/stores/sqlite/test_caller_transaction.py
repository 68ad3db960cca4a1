"""The caller's own transaction on a file that another process uses too."""

import signal
import sqlite3
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Queue
from holdfast.connect import connect
from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED, waiting_in

ORDERING = """
import sqlite3
from holdfast import Queue

jobs = Queue.create("jobs", base_url=f"sqlite:///{path}")
connection = sqlite3.connect(path)
connection.execute("create table if not exists orders (id text primary key)")

def order(name):
    connection.execute("insert into orders values (?)", [name])
    jobs.put(name, id=name, connection=connection)

def commit():
    connection.commit()
"""


def orders_in(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return [row[0] for row in connection.execute("select id from orders order by id")]
    finally:
        connection.close()


def test_another_process_gets_the_message_with_the_row_or_neither(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with Program(ORDERING, path) as shop, Program(OPENED, path) as worker:
        shop.ask("order('a')")
        assert worker.ask("waiting()") == "[]"
        shop.ask("commit()")
        assert worker.ask("claim()") == "['a']"
        assert orders_in(path) == ["a"]


def test_a_process_killed_before_its_commit_leaves_neither(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with Program(ORDERING, path) as shop:
        shop.ask("[order('a'), commit()]")
        shop.ask("order('b')")
        shop.send(signal.SIGKILL)
        shop.kill()
    assert (orders_in(path), waiting_in(path)) == (["a"], ["a"])


def test_a_waiting_claim_finds_it_after_the_commit_without_being_woken(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    polling = OPENED + (
        "from holdfast._sync.flows.claiming import claim as patiently\n"
        "def claim_soon():\n"
        "    return patiently(store, Claim('jobs', lease_s=60.0), timeout_s=100.0, poll_s=0.01)[0].id\n"
    )
    with Program(ORDERING, path) as shop, Program(polling, path) as worker:
        shop.ask("order('a')")
        worker.say("claim_soon()")
        shop.ask("commit()")
        assert worker.hear() == "a"


def test_a_client_on_a_connection_takes_that_connection_and_no_other(tmp_path: Path) -> None:
    connection, other = sqlite3.connect(tmp_path / "app.db"), sqlite3.connect(tmp_path / "app.db")
    with ControlPlaneClient.on(connect(connection)) as client:
        jobs = Queue.create("jobs", client=client)
        jobs.put("work", connection=connection)
        assert connection.in_transaction
        connection.rollback()
        assert jobs.length() == 0
        with pytest.raises(ValueError, match="connection= is a different one"):
            jobs.put("work", connection=other)
    connection.close()
    other.close()
