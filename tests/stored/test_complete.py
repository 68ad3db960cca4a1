"""The fixture of the coming release has everything that this code can store.

A field, column, table or kind of key that is new makes a test here fail until the fixture is written anew, with something in it:

    python tools/stored_forms.py tests/stored/next
"""

import base64
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import lmdb
import psycopg
import pytest
from msgspec import Struct, json
from psycopg import sql

from holdfast.connect import connect
from holdfast.records import Entry, Lease, Message
from holdfast.records.policies import Lane, OwnSettings, Policy, Settings
from holdfast.stores.lmdb.tables import TABLES
from holdfast.stores.postgres.address import parse
from tests.postgres import empty_postgres_url, shared_postgres
from tests.stored.loading import KINDS, content, facts_of, load, load_postgres

NEXT = "next"
Parts = tuple[set[str], set[str]]
"""What there can be in a store, and what there is in the fixture of a release."""

SELDOM: Final[dict[str, set[str]]] = {
    "sqlite": {"holdfast_topics.floor"},
    "lmdb": set(),
    "postgres": {
        *(f"counts.{column}" for column in ("queue", "ready", "leased", "buffered", "dead", "done")),
        *("events.number", "gaps.n", "gaps.behind", "topics.count", "topics.counted", "topics.floor"),
    },
    "redis": {":ahead", ":clock", ":copying", ":floor", ":gaps", ":moved", ":target_at"},
}
"""What no fixture has: it is written where a log was pruned, which takes days, after a restored backup, where a clock was set back or a
commit came late, and in the middle of a copy."""

SUFFIX: Final = re.compile(r'"(:[a-z_]+)"')


def record_fields(release: str, kind: str) -> Parts:
    """The fields of records, and those that are used by some record that can be read; what is as by default is left out of JSON."""
    snapshot = facts_of(release)[kind]["snapshot"]
    newer = snapshot.get("newer", {"done": {}, "groups": {}})
    settings = [*snapshot["queues"].values(), *snapshot["dicts"].values()]
    lanes = [lane for queue in newer["groups"].values() for lane in queue]
    messages = [message for states in snapshot["messages"].values() for found in states.values() for message in found]
    records: dict[type[Struct], list[dict[str, Any]]] = {
        Message: messages + [message for queue in newer["done"].values() for message in queue],
        Settings: settings,
        Policy: [one["policy"] for one in settings if one.get("policy")],
        Lane: lanes,
        OwnSettings: [one["own"] for one in lanes if "own" in one],
        Entry: [entry for entries in snapshot["entries"].values() for entry in entries],
        Lease: snapshot["leases"],
    }
    there = {f"{record.__name__}.{name}" for record in records for name in record.__struct_fields__}
    return there, {f"{record.__name__}.{name}" for record, rows in records.items() for row in rows for name in row}


def sqlite_columns(release: str, folder: Path) -> Parts:
    connect(f"sqlite:///{folder}/new.db").close()
    load(release, "sqlite", folder)
    used = "select 1 from {0} where {1} is not null and cast({1} as text) not in ('', '0') limit 1"
    with closing(sqlite3.connect(folder / "new.db")) as new, closing(sqlite3.connect(folder / "jobs.db")) as old:
        there = {f"{table}.{name}": used.format(table, name) for table, name in columns_of(new)}
        known = {f"{table}.{name}" for table, name in columns_of(old)}
        return {*there}, {column for column in there if column in known and old.execute(there[column]).fetchone()}


def columns_of(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    for (table,) in connection.execute("select name from sqlite_master where type = 'table' and name like 'holdfast%'").fetchall():
        for row in connection.execute(f"pragma table_info({table})"):
            yield table, row[1]


def lmdb_tables(release: str, folder: Path) -> Parts:
    load(release, "lmdb", folder)
    with lmdb.open(str(folder), max_dbs=64, readonly=True, lock=False) as environment, environment.begin() as txn:
        names = {key.decode() for key, _ in txn.cursor()}
        used = {name for name in names if txn.stat(environment.open_db(name.encode(), txn=txn, create=False))["entries"]}
    return {*TABLES}, used


def postgres_columns(release: str, _: Path) -> Parts:
    url = empty_postgres_url()
    connect(url).close()
    old = parse(load_postgres(release)).schema
    is_used = sql.SQL("bool_or({0} is not null and {0}::text not in ('', '0', 'false'))")
    used = set[str]()
    with psycopg.connect(shared_postgres(), autocommit=True) as connection:
        for table, names in columns_in(connection, old).items():
            query = sql.SQL("select {} from {}").format(
                sql.SQL(", ").join(is_used.format(sql.Identifier(name)) for name in names), sql.Identifier(old, table)
            )
            found = connection.execute(query).fetchone() or ()
            used |= {f"{table}.{name}" for name, there in zip(names, found, strict=True) if there}
        new = columns_in(connection, parse(url).schema)
    return {f"{table}.{name}" for table, names in new.items() for name in names}, used


def columns_in(connection: "psycopg.Connection[Any]", schema: str) -> dict[str, list[str]]:
    query = "select table_name, array_agg(column_name::text) from information_schema.columns where table_schema = %s group by table_name"
    found = dict(connection.execute(query, (schema,)).fetchall())
    found.pop("test_clock", None)  # An earlier test of this process may have left the clock that tests can move.
    return found


def redis_keys(release: str, _: Path) -> Parts:
    """How keys end: as the scripts write them, and as they are there."""
    lua = [path.read_text() for path in files("holdfast.stores.redis").joinpath("lua").rglob("*.lua")]  # type: ignore[attr-defined]
    commands = json.decode(content(release, "redis.json"), type=list[list[str]])
    keys = {base64.b64decode(words[1]).decode() for words in commands}
    there = {suffix for text in lua for suffix in SUFFIX.findall(text)}
    return there, {suffix for suffix in there if any(key.endswith(suffix) for key in keys)}


PARTS: dict[str, Callable[[str, Path], Parts]] = {
    "sqlite": sqlite_columns,
    "lmdb": lmdb_tables,
    "postgres": postgres_columns,
    "redis": redis_keys,
}


def missing(release: str, kind: str, folder: Path) -> set[str]:
    """What can be stored, and is not in the fixture."""
    return {part for there, used in (record_fields(release, kind), PARTS[kind](release, folder)) for part in there - used}


@pytest.mark.parametrize("kind", KINDS)
def test_the_fixture_has_something_of_all_that_can_be_stored(kind: str, tmp_path: Path) -> None:
    assert missing(NEXT, kind, tmp_path) == SELDOM[kind], (
        "write it anew, with something of that: python tools/stored_forms.py tests/stored/next"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_control_a_fixture_of_a_release_that_knew_less_lacks_it(kind: str, tmp_path: Path) -> None:
    lanes = {"sqlite": "holdfast_lanes.turn", "lmdb": "lanes", "postgres": "lanes.turn", "redis": ":lanes"}
    assert missing("0.1.0", kind, tmp_path) > {*SELDOM[kind], lanes[kind], "Message.labels", "Policy.groups", "OwnSettings.weight"}
