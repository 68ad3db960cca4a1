"""Fields of a message that have no place of their own: a new one changes no stored form, and an older release leaves it as it is."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import lmdb
import pytest
from msgspec import Raw, Struct

from holdfast.commands import Claim, Item, Move, Put, Settle
from holdfast.connect import connect
from holdfast.records import Message
from holdfast.stores import Store
from holdfast.stores.files.extra import EXTRA, LINED, Extra
from holdfast.stores.lmdb.rows import Row
from holdfast.stores.lmdb.store import LmdbStore
from holdfast.stores.sqlite import rows
from holdfast.testing.conformance.asking import claim_one, put

LATER = b'{"later":[1]}'

Kept = Callable[[], list[bytes]]


class Grown(Struct, frozen=True):
    """A record to which somebody added fields."""

    id: str
    metadata: str | None = None
    labels: tuple[str, ...] = ()
    weight: int = 1


def test_only_what_is_used_is_kept_and_what_a_later_release_added_is_left_out() -> None:
    extra = Extra(Grown)
    grown = Grown("a", labels=("x", "y"))
    assert extra.own == ("id", "metadata")
    assert extra.write(Grown("a", "about")) is None
    kept = extra.write(grown)
    assert kept == b'{"labels":["x","y"]}'
    assert Grown("a", None, *extra.read(kept)) == grown
    assert Grown("a", None, *extra.read(b'{"weight":2,"later":3}')) == Grown("a", weight=2)
    assert Grown("a", None, *extra.read(None)) == Grown("a")


def test_every_field_of_a_message_has_one_place_in_a_row() -> None:
    assert {*EXTRA.own, *LINED} == set(rows.ADDED) - {"alarm", "extra"}
    plain = tuple(name for name in EXTRA.own if name not in ("value", "last_error", "history"))
    assert Row.__struct_fields__[: len(plain)] == plain
    assert set(Message.__struct_fields__) >= set(EXTRA.own)


@pytest.fixture(params=["sqlite", "lmdb"])
def later(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Kept]]:
    """A store with a message that a later release put with a field of its own, and what is kept of such fields."""
    url = f"sqlite:///{tmp_path}/jobs.db" if request.param == "sqlite" else f"lmdb:///{tmp_path}"
    with closing(connect(url)) as store:
        put(store, "a")
        if isinstance(store, LmdbStore):
            yield store, _in_environment(store)
        else:
            yield store, _in_file(tmp_path / "jobs.db")


def _in_file(path: Path) -> Kept:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update holdfast_messages set extra = ?", (LATER,))

    def kept() -> list[bytes]:
        with closing(sqlite3.connect(path)) as connection:
            return [extra for (extra,) in connection.execute("select extra from holdfast_messages where extra is not null")]

    return kept


def _in_environment(store: LmdbStore) -> Kept:
    environment = store._environment
    assert isinstance(environment.lmdb, lmdb.Environment)
    with environment.lmdb.begin(write=True) as txn:
        row = next(txn.cursor(environment.tables.ready).iternext(values=False))
        txn.put(row[-8:], LATER, db=environment.tables.extras)

    def kept() -> list[bytes]:
        with environment.lmdb.begin() as txn:
            return [extra for _, extra in txn.cursor(environment.tables.extras).iternext()]

    return kept


def test_what_a_later_release_added_survives_all_but_an_update(later: tuple[Store, Kept]) -> None:
    store, kept = later
    assert kept() == [LATER]
    store.execute(Settle([claim_one(store).receipt], "ready"))
    store.execute(Settle([claim_one(store).receipt], "ready", counts=True, error="no"))
    assert kept() == [LATER]
    store.execute(Settle([claim_one(store).receipt], "dead"))
    store.execute(Move("jobs", "ready", to_queue="again"))
    (message,) = store.execute(Claim("again", "me", 30.0)).messages
    assert (message.id, kept()) == ("a", [LATER])


def test_it_goes_with_its_message(later: tuple[Store, Kept]) -> None:
    store, kept = later
    store.execute(Put("jobs", [Item("b", Raw(b"1"))]))
    store.execute(Settle([claim_one(store).receipt]))
    assert kept() == []
    assert claim_one(store).id == "b"
