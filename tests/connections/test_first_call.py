"""The first call of a client may be one in the middle of the caller's transaction, on a file that it has not opened yet."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import ControlPlaneClient, Dict, Queue


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An application in whose transaction something is written, so that nobody else may write."""
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        connection.execute("create table orders (name text)")
        connection.execute("insert into orders values ('paper')")
        yield connection


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/app.db") as made:
        yield made


def test_a_put_does_not_wait_for_the_transaction_that_it_is_part_of(shop: sqlite3.Connection, client: ControlPlaneClient) -> None:
    jobs: Queue[Any] = Queue("jobs", client=client)
    shared: Dict[Any] = Dict("shared", client=client)
    jobs.put("first", connection=shop)
    shared.put("state", "new", connection=shop)
    assert client.opened is None, "opening it would have waited"
    shop.commit()
    assert (jobs.get(), shared.get("state")) == ("first", "new")
    jobs.put("second", connection=shop)
    shop.commit()
    assert jobs.get() == "second"


def test_nothing_is_left_of_it_after_a_rollback(shop: sqlite3.Connection, client: ControlPlaneClient) -> None:
    jobs: Queue[Any] = Queue("jobs", client=client)
    jobs.put("first", connection=shop)
    shop.rollback()
    assert shop.execute("select count(*) from sqlite_schema where name like 'holdfast%'").fetchone() == (0,)
    assert jobs.length() == 0


@pytest.mark.anyio
async def test_a_task_does_not_wait_either(shop: sqlite3.Connection, tmp_path: Path) -> None:
    async with ControlPlaneClient(f"sqlite:///{tmp_path}/app.db") as client:
        jobs: Queue[Any] = Queue("jobs", client=client)
        await jobs.aio.put("first", connection=shop)
        assert client.opened is None
        shop.commit()
        assert await jobs.aio.get() == "first"


def test_a_connection_to_another_file_is_refused_as_ever(shop: sqlite3.Connection, tmp_path: Path) -> None:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/other.db") as client:
        jobs: Queue[Any] = Queue("jobs", client=client)
        with pytest.raises(ValueError, match=r"app\.db, but the store is"):
            jobs.put("work", connection=shop)
