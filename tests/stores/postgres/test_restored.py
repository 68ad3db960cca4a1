"""A dump restored in another cluster, whose transaction numbers are others: the store goes on, and its log begins anew."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from holdfast.commands import Changes
from holdfast.errors import Compacted
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import JOBS, claim, events, grant, ids, put, read, settle, write
from holdfast.testing.servers.postgres import PostgresServer

QUEUE = f"queue:{JOBS}"
BURN = "do $$ begin for i in 1 .. 2000 loop perform pg_current_xact_id(); commit; end loop; end $$"


@pytest.fixture(scope="module")
def old() -> Iterator[PostgresServer]:
    with PostgresServer() as server, psycopg.connect(server.url, autocommit=True) as connection:
        # Its transactions are numbered higher than those of a new one will be for a while.
        connection.execute(BURN)
        yield server


@pytest.fixture
def new() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def move(old: PostgresServer, new: PostgresServer, folder: Path) -> None:
    dump = folder / "dump.sql"
    subprocess.run([old.binaries / "pg_dump", "--no-owner", "--file", dump, old.url], check=True)
    subprocess.run(
        [new.binaries / "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--output", "/dev/null", "--file", dump, new.url], check=True
    )


def test_a_restored_store_goes_on_and_its_watchers_begin_anew(old: PostgresServer, new: PostgresServer, tmp_path: Path) -> None:
    before = PostgresStore(old.url)
    put(before, "a", "b")
    held = claim(before, lease_s=600)
    write(before, "k", 1)
    lease = grant(before, lease_s=600)
    seen = before.execute(Changes(QUEUE)).upto
    put(before, "c")
    move(old, new, tmp_path)
    lost = write(before, "k", "after the dump").entry
    before.close()

    store = PostgresStore(new.url)
    assert read(store) == {"k": 1}
    assert settle(store, held) == [True]
    with pytest.raises(Compacted):
        events(store, after=seen)
    put(store, "d")
    assert [event.event for event in events(store)] == ["settled", "put"], "what is new is told at once"
    assert ids(claim(store, 9)) == ["b", "c", "d"]
    assert lost is not None
    assert write(store, "k", 2).entry.revision > max(lost.revision, lease.token), "numbers go on above all that were given out"  # type: ignore[union-attr]
    store.close()
    again = PostgresStore(new.url)
    assert [event.event for event in events(again)] == ["settled", "put", "claimed"], "only the first who opens it begins anew"
    again.close()
