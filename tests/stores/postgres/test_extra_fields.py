"""A field that a later release adds to messages needs no column: it is kept beside those that have one, and travels with the message."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from msgspec import json

from holdfast.connect import connect
from holdfast.stores import Store
from holdfast.stores.postgres.function_names import own
from holdfast.testing.conformance.asking import JOBS, put

SCHEMA = "extra"
PUT = "select extra.fast_put('', false, 'jobs', '{a,b}', '{1,2}', %s)"
EXECUTE = "select extra.execute(%s, '{1}', %s)"
CLAIM = "select extra.fast_claim('', false, 'jobs', 'me', 30, false, 10, false, 'place', null, null)"
OBJECTS = json.encode([("queue", JOBS, False)]).decode()


@pytest.fixture
def store(postgres_server: str) -> Iterator[Store]:
    store = connect(f"{postgres_server}?schema={SCHEMA}")
    put(store, "first")
    yield store
    store.close()
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"drop schema {SCHEMA} cascade".encode())


@pytest.fixture
def connection(store: Store, postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield connection


def ask(connection: psycopg.Connection[Any], statement: str, *given: object) -> Any:
    row = connection.execute(own(statement).encode(), [json.encode(part).decode() if not isinstance(part, str) else part for part in given])
    return json.decode((row.fetchone() or [""])[0])


def claimed(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    return {message["id"]: message for message in ask(connection, CLAIM)["messages"]}


def kept(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    return dict(connection.execute("select id, extra from extra.messages where extra is not null").fetchall())


def test_what_has_no_column_travels_with_the_message(connection: psycopg.Connection[Any]) -> None:
    ask(connection, PUT, [{"labels": ["red", "blue"], "later": 1, "max_attempts": 3}, {"max_attempts": 5, "priority": 7}])
    assert kept(connection) == {"a": {"labels": ["red", "blue"], "later": 1}}
    found = claimed(connection)
    assert (found["a"]["labels"], found["a"]["later"], found["a"]["max_attempts"]) == (["red", "blue"], 1, 3)
    assert (found["b"]["max_attempts"], found["b"]["priority"], set(found)) == (5, 7, {"a", "b", "first"})
    assert found["b"].keys() - found["first"].keys() == {"max_attempts", "priority"}


def test_the_full_rules_keep_it_as_well(connection: psycopg.Connection[Any]) -> None:
    item = {"id": "k", "value": 1, "key": "k", "labels": ["red"], "metadata": '{"a":1}'}
    ask(connection, EXECUTE, {"type": "Put", "queue": JOBS, "items": [item]}, OBJECTS)
    message = {"queue": JOBS, "id": "i", "value": "1", "n": 90, "position": 1, "created_at": 1, "labels": ["blue"], "history": None}
    rest = {"priority": 0, "state": "ready", "attempts": 0, "failures": 0, "holder": "", "token": 0, "since": 0, "until": 0}
    begin = {"type": "BeginImport", "source": "s", "merge": True, "survey": {"now": 0, "latest": 0, "next_n": 0}}
    ask(connection, EXECUTE, begin, "[]")
    page = {"type": "Import", "source": "s", "after": "", "place": "1", "checksum": ""}
    ask(connection, EXECUTE, page | {"messages": [message | rest | {"expired_to": "place", "endings": 0}]}, "[]")
    assert kept(connection) == {"k": {"labels": ["red"]}, "i": {"labels": ["blue"]}}
    found = claimed(connection)
    assert (found["k"]["labels"], found["i"]["labels"], found["k"]["metadata"]) == (["red"], ["blue"], {"a": 1})
