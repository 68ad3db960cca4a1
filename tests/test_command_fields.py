"""Every field of every command, generated from its declaration: what it may hold is taken, and nothing beyond it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from msgspec import Raw, json

from holdfast.commands import Browse, Changes, Command, Look, Names, Put, Read
from holdfast.commands.together import AnyCommand
from holdfast.errors import HoldfastError
from holdfast.records import State
from holdfast.stores import Store
from holdfast.stores.http.protocol import ROUTES
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import item
from holdfast.testing.conformance.threads import PATIENCE_S
from tests.fields import CASES, COMMANDS, PARTS, Case, beyond, edges
from tests.server.serving import JSON, Served
from tests.stores_by_name import factory_of

STATES: tuple[State, ...] = ("ready", "leased", "dead", "buffered")
CHECKED_OTHERWISE = {"queue", "dict", "name", "kind", "key", "topic", "to", "state", "which", "expired_to", "return_to", "dead_letter"} | {
    "to_queue", "error", "lease_id", "default", "id", "value", "if_ready", "if_leased", "if_id", "if_recent", "recent", "do", "expect",
    "expected", "items", "receipts", "changes", "names", "survey", "settings", "messages", "fences", "entries", "commands", "keys", "after",
    "group", "groups", "group_rate", "group_dead", "rate", "order", "backoff", "late_to", "trace", "lanes",
}  # fmt: skip
"""Names, words to choose from, values, which the store measures, and what has fields of its own."""


@pytest.mark.parametrize("case", CASES)
def test_what_a_field_may_hold_is_taken_and_what_is_beyond_is_refused_by_its_name(case: str) -> None:
    one = CASES[case]
    for value in edges(one.field):
        one.command(value)
    for value in beyond(one.field):
        with pytest.raises((ValueError, TypeError), match=one.field.name):
            one.command(value)


def test_every_field_is_declared_or_known_to_be_checked_otherwise() -> None:
    structs = [*COMMANDS, *(part for part, _, _ in PARTS)]
    for struct in structs:
        declared = {field.name for field in struct.checked}
        assert set(struct.__struct_fields__) - declared <= CHECKED_OTHERWISE, type(struct).__name__
    plain = {kind for kind in AnyCommand.__args__ if not hasattr(kind, "checked")}
    assert {kind.__name__ for kind in plain} == {"Put", "Count", "Look", "Length", "Survey", "EndImport", "Together"}


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served(MemoryStore())
    yield served
    served.close()


def test_over_http_what_is_beyond_a_field_is_a_422_that_names_it(served: Served) -> None:
    paths = {route.command: route.path for route in ROUTES}
    with urllib3.PoolManager() as pool:
        for name, case in CASES.items():
            for value in sampled(case):
                url = served.url + paths[type(case.asked(case.base))]
                reply = pool.request("POST", url, body=case.body(value), headers=JSON, retries=False, timeout=PATIENCE_S)
                assert (reply.status, case.field.name in json.decode(reply.data)["detail"]) == (422, True), (name, value, reply.data)


def sampled(case: Case) -> list[Any]:
    """Two of the values beyond the field that JSON can say."""
    return [value for value in beyond(case.field) if not isinstance(value, Raw) or bytes(value) == b"[1]"][:2]


def test_the_edges_of_every_field_leave_a_store_that_can_be_read() -> None:
    store = MemoryStore(clock=FakeClock())
    ask_everything(store)
    store.close()


@pytest.mark.verify
@pytest.mark.parametrize("kind", ["sqlite", "lmdb", "postgres", "redis", "http"])
def test_the_edges_of_every_field_leave_every_store_readable(kind: str, tmp_path: Path) -> None:
    store = factory_of(kind, tmp_path).make(FakeClock())
    ask_everything(store)
    store.close()


def ask_everything(store: Store) -> None:
    for case in CASES.values():
        for value in edges(case.field):
            store.execute(Put("q", [item("again")]))
            ask(store, case.command(value))
            read_everything(store)


def ask(store: Store, command: Command[Any]) -> None:
    try:
        store.execute(command)
    except HoldfastError:
        pass  # Refused for what it asks, not for how it is written.
    except ValueError as error:
        assert "limit" in str(error), "only a limit of the store may refuse what a field may hold"  # noqa: PT017


def read_everything(store: Store) -> None:
    for state in STATES:
        store.execute(Browse("q", state=state, limit=1_000))
    for kind in ("queue", "dict"):
        store.execute(Names(kind))
    store.execute(Read("d"))
    store.execute(Look("d", ["k"]))
    store.execute(Changes("dict:d"))
    store.execute(Changes("queue:q"))
