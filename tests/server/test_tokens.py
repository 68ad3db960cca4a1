"""Tokens, scopes and namespaces: nobody does what their token does not allow, by any route."""

from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from msgspec import json

from holdfast.commands import (
    Acquire,
    BeginImport,
    Browse,
    Change,
    Changes,
    Claim,
    Clear,
    Command,
    Configure,
    Count,
    EndImport,
    Extend,
    Fences,
    Import,
    LeaseName,
    Length,
    Look,
    Move,
    Names,
    Prune,
    Put,
    Read,
    Release,
    Renew,
    Seal,
    Settle,
    Survey,
    Together,
    Write,
)
from holdfast.commands.copying import Surveyed
from holdfast.commands.topics import key_topic, lease_topic, queue_topic, room_topic, watch_topic
from holdfast.errors import NotAllowed
from holdfast.records import Receipt
from holdfast.server.app import Options
from holdfast.server.layers import tokens as layer
from holdfast.server.needs import Need
from holdfast.server.scopes import VERBS, Scope
from holdfast.server.tokens import Token, find, keep, revoke, split
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.protocol import PATHS, ROUTES
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance.asking import item, put, raw, read
from tests.server.serving import Served

NOW = 1_000_000.0


def allowed_by(command: Command[Any], *scopes: str) -> tuple[Command[Any], tuple[str, ...]]:
    return command, scopes


RECEIPT = Receipt("q", "a", 1)
MATRIX = [  # A command of every kind, and the scopes that together allow it.
    allowed_by(Put("q", [item("a")]), "queue:q:put"),
    allowed_by(Put("q", [item("a", dead_letter="x")]), "queue:q:put", "queue:x:put"),
    allowed_by(Claim("q"), "queue:q:claim"),
    allowed_by(Claim("q", dead_letter="x"), "queue:q:claim", "queue:x:put"),
    allowed_by(Extend([RECEIPT], 1.0), "queue:q:claim"),
    allowed_by(Settle([RECEIPT, Receipt("x", "a", 1)]), "queue:q:claim", "queue:x:claim"),
    allowed_by(Settle([RECEIPT], "dead", dead_letter="x"), "queue:q:claim", "queue:x:put"),
    allowed_by(Move("q", "ready"), "queue:q:manage"),
    allowed_by(Move("q", "ready", to_queue="x"), "queue:q:manage", "queue:x:put"),
    allowed_by(Browse("q"), "queue:q:read"),
    allowed_by(Count("q"), "queue:q:read"),
    allowed_by(Read("d"), "dict:d:read"),
    allowed_by(Length("d"), "dict:d:read"),
    allowed_by(Write("d", [Change("a", value=raw(1))]), "dict:d:write"),
    allowed_by(Acquire("d", "k", "me", "i", 1.0), "dict:d:hold"),
    allowed_by(Acquire("d", "k", "me", "i", 1.0, raw(1)), "dict:d:hold", "dict:d:write"),
    allowed_by(Acquire(None, "l", "me", "i", 1.0), "lease:l:hold"),
    allowed_by(Renew([LeaseName(None, "l", "i"), LeaseName("d", "k", "i")], 1.0), "lease:l:hold", "dict:d:hold"),
    allowed_by(Release([LeaseName(None, "l", "i")]), "lease:l:hold"),
    allowed_by(Look(None, ["l"]), "lease:l:read"),
    allowed_by(Look("d", ["k"]), "dict:d:read"),
    allowed_by(Configure("queue", "q"), "queue:q:manage"),
    allowed_by(Clear("dict", "d"), "dict:d:manage"),
    allowed_by(Names("queue", "q-"), "queue:q-*:read"),
    allowed_by(Changes("queue:q"), "queue:q:read"),
    allowed_by(Changes("lease::l"), "lease:l:read"),
    allowed_by(Prune(), "admin"),
    allowed_by(Survey(), "admin"),
    allowed_by(Fences(), "admin"),
    allowed_by(BeginImport("s@1", Surveyed(1, 1, 1)), "admin"),
    allowed_by(Import("s@1", "", "", ""), "admin"),
    allowed_by(EndImport(), "admin"),
    allowed_by(Seal("elsewhere", 1), "admin"),
    allowed_by(Together([Put("q", [item("a")]), Write("d", [Change("a", value=raw(1))])]), "queue:q:put", "dict:d:write"),
]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def served(store: MemoryStore) -> Iterator[Served]:
    served = Served(store, Options(asks_for_tokens=True))
    yield served
    served.close()


def make(store: MemoryStore, *scopes: str, **options: Any) -> str:
    """A new token with these scopes, kept in the store; its text."""
    token, text = Token.make("ann", scopes, now=NOW, **options)
    store.execute(keep(token))
    return text


def ask(served: Served, command: Command[Any], token: str | None) -> int:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return get(served, PATHS[type(command)], headers, json.encode(command))


def get(served: Served, path: str, headers: dict[str, str], body: bytes | None = None) -> int:
    reply = urllib3.request("GET" if body is None else "POST", served.url + path, body=body, headers=headers, retries=False)
    return reply.status


def test_the_matrix_has_every_route() -> None:
    assert {type(command) for command, _ in MATRIX} == {route.command for route in ROUTES}


@pytest.mark.parametrize(
    ("command", "scopes"), MATRIX, ids=lambda each: type(each).__name__ if isinstance(each, Command) else " ".join(each)
)
def test_a_route_is_open_to_exactly_the_scopes_it_needs(
    served: Served, store: MemoryStore, command: Command[Any], scopes: tuple[str, ...]
) -> None:
    everything_else = [f"{kind}:{name}:{verb}" for kind in ("queue", "dict", "lease") for name in "qdlxk" for verb in VERBS]
    allowed = [make(store, *scopes), make(store, "admin")]
    assert ask(served, command, None) == 401
    for missing in scopes:
        others = [scope for scope in (*everything_else, *scopes) if scope not in (missing, "admin")]
        assert ask(served, command, make(store, *others)) == 403, f"it was done without {missing}"
    assert [status for token in allowed if (status := ask(served, command, token)) in (401, 403)] == []


@pytest.mark.parametrize("path", ["/v1/about", "/openapi.json", "/v1/watch?topic=queue:q", "/v1/wait", "/v1/nothing"])
def test_nothing_but_health_is_open_without_a_token(served: Served, path: str) -> None:
    assert get(served, path, {}) == 401
    assert get(served, "/healthz", {}) == 200
    assert get(served, "/readyz", {}) == 200


@pytest.mark.parametrize(
    "shown", ["", "Bearer", "Bearer ", "Bearer hf_", "Bearer hf_x_y", "Basic hf_x_y", "Bearer x" * 1000, "Bearer hf__", "Bearer hf_é_y"]
)
def test_what_is_no_token_is_refused(served: Served, shown: str) -> None:
    assert get(served, "/v1/about", {"authorization": shown.encode("latin-1").decode("latin-1")}) == 401


def test_a_wrong_secret_is_refused(served: Served, store: MemoryStore) -> None:
    text = make(store, "admin")
    assert get(served, "/v1/about", {"authorization": f"Bearer {text}"}) == 200
    assert get(served, "/v1/about", {"authorization": f"Bearer {text[:-1]}"}) == 401
    assert get(served, "/v1/about", {"authorization": f"bearer {text}"}) == 200


def test_a_revoked_token_is_refused_at_once(served: Served, store: MemoryStore) -> None:
    text = make(store, "queue:*:put")
    client = HttpStore(served.url, token=text)
    put(client, "a")
    token_id, _ = split(text) or ("", "")
    store.execute(revoke(token_id))
    with pytest.raises(NotAllowed, match="revoked"):
        put(client, "b")
    client.close()


def test_a_token_ends_with_its_time() -> None:
    token, text = Token.make("ann", ["admin"], now=NOW, expires_in_s=10)
    _, secret = split(text) or ("", "")
    assert token.is_shown_by(secret, NOW + 9.9)
    assert not token.is_shown_by(secret, NOW + 10)


def test_only_a_hash_of_a_token_is_kept(store: MemoryStore) -> None:
    text = make(store, "admin")
    _, secret = split(text) or ("", "")
    assert len(secret) >= 43, "256 bits take 43 characters"
    assert secret.encode() not in bytes(store.execute(find()).entries[0].value)


def test_a_namespace_is_left_by_no_pattern(served: Served, store: MemoryStore) -> None:
    text = make(store, "queue:*:*", "dict:*:*", "lease:*:*", namespaces=["team"])
    for name, status in (("team/jobs", 200), ("jobs", 403), ("team", 403), ("teams/jobs", 403), ("other/team/jobs", 403)):
        assert ask(served, Put(name, [item("a")]), text) == status
        assert ask(served, Acquire(None, name, "me", "i", 1.0), text) == status
    assert ask(served, Names("queue"), text) == 403
    assert ask(served, Names("queue", "team/"), text) == 200
    admin = make(store, "admin", namespaces=["team"])
    assert ask(served, Prune(), admin) == 403, "an administrator of a namespace is none of the server"
    assert ask(served, Clear("queue", "team/jobs"), admin) == 200


@pytest.mark.parametrize("scopes", [("queue:*:*", "dict:*:*", "lease:*:*"), ("admin",)])
def test_the_names_of_the_server_itself_are_closed_to_everyone(served: Served, store: MemoryStore, scopes: tuple[str, ...]) -> None:
    text = make(store, *scopes)
    for command in (
        Read("holdfast/tokens"),
        Write("holdfast/tokens", [Change("x", value=raw(1))]),
        Clear("dict", "holdfast/tokens"),
        Changes("dict:holdfast/tokens"),
        Write("holdfast/audit", [Change("x", value=raw(1))]),
        Together([Put("q", [item("a")]), Read("holdfast/tokens")]),
    ):
        assert ask(served, command, text) == 403, command
    for topic in ("dict:holdfast/tokens", "watch:dict:holdfast/tokens", "lease:holdfast/tokens:x", "nonsense"):
        expected = 200 if topic == "nonsense" and "admin" in scopes else 403
        assert get(served, "/v1/wait", {"authorization": f"Bearer {text}"}, json.encode({"topics": [[topic]]})) == expected
    assert ask(served, Read("holdfast/audit"), text) == (200 if "admin" in scopes else 403)


def test_without_tokens_the_names_of_the_server_are_closed_too() -> None:
    served = Served(MemoryStore())
    assert ask(served, Read("holdfast/tokens"), None) == 403
    assert ask(served, Put("q", [item("a")]), None) == 200
    served.close()


@pytest.mark.parametrize("topic", [queue_topic("q"), watch_topic("queue:q"), key_topic("q", '"k"'), room_topic("q")])
def test_whoever_may_use_a_queue_may_wait_on_it_and_nobody_else(served: Served, store: MemoryStore, topic: str) -> None:
    def status(scope: str) -> int:
        headers = {"authorization": f"Bearer {make(store, scope)}"}
        return get(served, "/v1/wait", headers, json.encode({"topics": [[topic]]}))

    assert [status(f"queue:q:{verb}") for verb in ("read", "claim", "put")] == [200, 200, 200]
    assert [status(scope) for scope in ("queue:x:*", "dict:*:*", "queue:q:manage")] == [403, 403, 403]


def test_a_lease_of_a_dict_is_waited_on_by_who_may_hold_it(served: Served, store: MemoryStore) -> None:
    headers = {"authorization": f"Bearer {make(store, 'dict:d:hold')}"}
    for topic, status in ((lease_topic("d", "k"), 200), (lease_topic("e", "k"), 403), (lease_topic(None, "k"), 403)):
        assert get(served, "/v1/wait", headers, json.encode({"topics": [[topic]]})) == status


def test_who_guesses_tokens_is_slowed_down_and_told_for_how_long(store: MemoryStore) -> None:
    clock = [NOW]
    failures = layer.Failures(lambda: clock[0])
    for _ in range(layer.FAILURES):
        failures.check("1.2.3.4")
        failures.add("1.2.3.4")
    with pytest.raises(WireError) as refused:
        failures.check("1.2.3.4")
    assert (refused.value.problem.status, refused.value.headers) == (429, ((b"retry-after", b"7"),))
    failures.check("5.6.7.8")
    clock[0] += layer.FAILURE_EVERY_S
    failures.check("1.2.3.4")


def test_many_failed_tokens_end_in_429_over_the_wire(served: Served) -> None:
    statuses = [get(served, "/v1/about", {"authorization": f"Bearer hf_a_{number}"}) for number in range(layer.FAILURES + 1)]
    assert statuses == [401] * layer.FAILURES + [429]


def test_administrative_acts_are_written_down_with_who_did_them(served: Served, store: MemoryStore) -> None:
    client = HttpStore(served.url, token=make(store, "admin"))
    put(client, "a")
    assert client.execute(Clear("queue", "jobs")) == 1
    step = client.execute(Together([Configure("queue", "jobs", paused=True), Write("d", [Change("a", value=raw(1))])]))
    assert len(step) == 2
    acts = list(read(client, dict="holdfast/audit").values())
    client.close()
    assert acts == [{"who": "ann", "what": "clear", "to": "queue jobs"}, {"who": "ann", "what": "configure", "to": "queue jobs"}]


@pytest.mark.parametrize("scope", ["", "queue", "queue:jobs", "queue::put", "queue:jobs:eat", "stack:a:put", "queue:a:admin", "queue:a:"])
def test_what_is_no_scope_is_refused(scope: str) -> None:
    with pytest.raises(ValueError, match="no scope"):
        Scope.parse(scope)


@pytest.mark.parametrize(
    ("pattern", "name", "is_like"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("*", "any", True),
        ("a-*", "a-", True),
        ("a*z", "a-z", True),
        ("[a]", "a", False),
        ("?", "a", False),
    ],
)
def test_only_a_star_means_anything_in_a_pattern(pattern: str, name: str, is_like: bool) -> None:  # noqa: FBT001 - a table
    assert Scope.parse(f"queue:{pattern}:put").allows(Need("queue", name, "put")) is is_like


def test_a_name_with_colons_fits_a_scope() -> None:
    scope = Scope.parse("dict:a:b:*:read,write")
    assert scope.allows(Need("dict", "a:b:c", "write"))
    assert not scope.allows(Need("dict", "a", "read"))
