"""Every route under every scope: nobody gets further than their token says, and no route is missing from the table."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from msgspec import Struct, json

from holdfast.commands import Configure
from holdfast.server.asgi import Receive, Scope, Send
from holdfast.server.auth.scopes import VERBS
from holdfast.server.layers.signin import OPEN
from holdfast.server.routes.flows import FLOWS
from holdfast.server.routes.openapi import openapi
from holdfast.server.routes.signal import SIGNAL_PATH
from holdfast.server.routes.templates import Template
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance.threads import PATIENCE_S
from tests.server.serving import JSON, Served
from tests.server.test_tokens import make

NUMBERS = itertools.count(1_000)
ITEM = {"id": "a", "value": 1}
RECEIPT = ["q", "a", 1]


class Row(Struct, frozen=True):
    """A request, and by hand what it takes; `put|claim` is either."""

    path: str
    body: Any
    needs: tuple[str, ...]


JOB = ("queue:q:read", *(f"dict:q-{part}:read" for part in ("results", "progress", "steps", "errors")))

ROWS = [
    Row("POST /v1/put", {"queue": "q", "items": [ITEM]}, ("queue:q:put",)),
    Row("POST /v1/put", {"queue": "q", "items": [ITEM | {"dead_letter": "dead"}]}, ("queue:q:put", "queue:dead:put")),
    Row("POST /v1/claim", {"queue": "q"}, ("queue:q:claim",)),
    Row("POST /v1/claim", {"queue": "q", "take": True, "key": "k"}, ("queue:q:claim",)),
    Row("POST /v1/claim", {"queue": "q", "dead_letter": "dead"}, ("queue:q:claim", "queue:dead:put")),
    Row("POST /v1/claim?wait_s=0", {"queue": "q"}, ("queue:q:claim",)),
    Row("POST /v1/extend", {"receipts": [RECEIPT], "lease_s": 1}, ("queue:q:claim",)),
    Row("POST /v1/extend", {"receipts": [RECEIPT, ["dead", "a", 1]], "lease_s": 1}, ("queue:q:claim", "queue:dead:claim")),
    Row("POST /v1/settle", {"receipts": [RECEIPT]}, ("queue:q:claim",)),
    Row("POST /v1/settle", {"receipts": [RECEIPT], "to": "dead", "dead_letter": "dead"}, ("queue:q:claim", "queue:dead:put")),
    Row("POST /v1/move", {"queue": "q", "to": "gone"}, ("queue:q:manage",)),
    Row("POST /v1/move", {"queue": "q", "to": "ready", "to_queue": "dead"}, ("queue:q:manage", "queue:dead:put")),
    Row("POST /v1/browse", {"queue": "q"}, ("queue:q:read",)),
    Row("POST /v1/count", {"queue": "q"}, ("queue:q:read",)),
    Row("POST /v1/groups", {"queue": "q"}, ("queue:q:read",)),
    Row("POST /v1/read", {"dict": "d"}, ("dict:d:read",)),
    Row("POST /v1/length", {"dict": "d"}, ("dict:d:read",)),
    Row("POST /v1/write", {"dict": "d", "changes": [{"key": "k", "value": 1}]}, ("dict:d:write",)),
    Row("POST /v1/acquire", {"dict": "d", "key": "k", "holder": "h", "lease_id": "l", "lease_s": 1}, ("dict:d:hold",)),
    Row(
        "POST /v1/acquire",
        {"dict": "d", "key": "k", "holder": "h", "lease_id": "l", "lease_s": 1, "default": 1},
        ("dict:d:hold", "dict:d:write"),
    ),
    Row("POST /v1/acquire", {"dict": None, "key": '["lock","k"]', "holder": "h", "lease_id": "l", "lease_s": 1}, ("lease:k:hold",)),
    Row("POST /v1/renew", {"names": [[None, "k", "l"], ["d", "k", "l"]], "lease_s": 1}, ("lease:k:hold", "dict:d:hold")),
    Row("POST /v1/release", {"names": [[None, "k", "l"]]}, ("lease:k:hold",)),
    Row("POST /v1/resize", {"key": '["semaphore","k"]', "capacity": 4}, ("lease:k:manage",)),
    Row("POST /v1/break", {"dict": None, "key": '["lock","k"]', "reason": "why"}, ("lease:k:manage",)),
    Row("POST /v1/break", {"dict": "d", "key": "k", "reason": "why"}, ("dict:d:manage",)),
    Row("POST /v1/leases", {"dict": "d"}, ("dict:d:read",)),
    Row("POST /v1/leases", {}, ("lease:*:read",)),
    Row("POST /v1/leases", {"prefix": "k"}, ("lease:k*:read",)),
    Row("POST /v1/leases", {"prefix": '["lock","k'}, ("lease:k*:read",)),
    Row("POST /v1/leases", {"prefix": '["lo'}, ("lease:*:read",)),
    Row("POST /v1/counts", {}, ("queue:*:read",)),
    Row("POST /v1/counts", {"prefix": "q"}, ("queue:q*:read",)),
    Row("POST /v1/look", {"dict": "d", "keys": ["k"]}, ("dict:d:read",)),
    Row("POST /v1/look", {"dict": "d", "keys": []}, ("dict:d:read",)),
    Row("POST /v1/look", {"dict": None, "keys": ["k"]}, ("lease:k:read",)),
    Row("POST /v1/configure", lambda: {"kind": "queue", "name": "q", "maxsize": next(NUMBERS)}, ("queue:q:manage",)),
    Row("POST /v1/configure", lambda: {"kind": "queue", "name": "q", "group": "g", "limit": next(NUMBERS)}, ("queue:q:manage",)),
    Row("POST /v1/configure", {"kind": "queue", "name": "q", "throttle_s": 0.0}, ("queue:q:manage",)),
    Row("POST /v1/configure", {"kind": "queue", "name": "dead"}, ("queue:dead:read|claim|put|hold|write|manage",)),
    Row("POST /v1/configure", lambda: {"kind": "dict", "name": f"new {next(NUMBERS)}"}, ("dict:new:manage",)),
    Row("POST /v1/clear", {"kind": "queue", "name": "q"}, ("queue:q:manage",)),
    Row("POST /v1/clear", {"kind": "dict", "name": "d", "drop": True}, ("dict:d:manage",)),
    Row("POST /v1/names", {"kind": "queue"}, ("queue:*:read",)),
    Row("POST /v1/names", {"kind": "dict", "prefix": "d"}, ("dict:d*:read",)),
    Row("POST /v1/changes", {"topic": "queue:q"}, ("queue:q:read",)),
    Row("POST /v1/changes", {"topic": "dict:d"}, ("dict:d:read",)),
    Row("POST /v1/changes", {"topic": "lease::k"}, ("lease:k:read",)),
    Row("POST /v1/changes", {"topic": "elsewhere"}, ("admin",)),
    Row("POST /v1/changes", {"topic": "key:q"}, ("admin",)),
    Row("POST /v1/lowerfences", {"dict": "d"}, ("admin",)),
    Row("POST /v1/prune", {}, ("admin",)),
    Row("POST /v1/survey", {}, ("admin", "copied")),
    Row("POST /v1/fences", {}, ("admin", "copied")),
    Row("POST /v1/seal", {"to": "elsewhere", "at": 2**53 - 1}, ("admin", "copied")),
    Row("POST /v1/beginimport", {"source": "s", "survey": {"now": 0, "latest": 0, "next_n": 0}}, ("admin",)),
    Row("POST /v1/import", {"source": "s", "after": "", "place": "p", "checksum": ""}, ("admin",)),
    Row("POST /v1/endimport", {}, ("admin",)),
    Row(
        "POST /v1/together",
        {"commands": [{"type": "Put", "queue": "q", "items": [ITEM]}, {"type": "Read", "dict": "d", "limit": 10}]},
        ("queue:q:put", "dict:d:read"),
    ),
    Row("POST /v1/together", {"commands": [{"type": "Prune"}, {"type": "Read", "dict": "d", "limit": 10}]}, ("admin",)),
    Row(
        "POST /v1/wait",
        {"topics": [["queue:q"], ["dict:d"]], "timeout_s": 0},
        ("queue:q:read|claim|put|hold|write", "dict:d:read|claim|put|hold|write"),
    ),
    Row("POST /v1/wait", {"topics": [["room:q"], ["watch:queue:q"]], "timeout_s": 0}, ("queue:q:read|claim|put|hold|write",)),
    Row("POST /v1/wait", {"topics": [["key:q:k"]], "timeout_s": 0}, ("queue:q:read|claim|put|hold|write",)),
    Row("POST /v1/wait", {"topics": [["lease:d:k"]], "timeout_s": 0}, ("dict:d:read|claim|put|hold|write",)),
    Row("POST /v1/wait", {"topics": [["lease::k"]], "timeout_s": 0}, ("lease:k:read|claim|put|hold|write",)),
    Row("POST /v1/wait", {"topics": [["elsewhere"]], "timeout_s": 0}, ("admin",)),
    Row("POST /v1/wait", {"topics": [["watch:audit"]], "timeout_s": 0}, ("server:audit:read",)),
    Row("POST /v1/wait", {"topics": [["worker:01a1"]], "timeout_s": 0}, ("queue:*any*:claim",)),
    Row("GET /v1/watch?topic=queue:q&after=4000000000000000", None, ("queue:q:read",)),
    Row("GET /v1/watch?topic=dict:d&after=4000000000000000", None, ("dict:d:read",)),
    Row("GET /v1/audit", None, ("server:audit:read",)),
    Row("GET /v1/tokens", None, ("admin",)),
    Row("POST /v1/activity", {"queues": ["q", "dead"]}, ("queue:q:read", "queue:dead:read")),
    Row("GET /metrics", None, ("server:metrics:read",)),
    Row("GET /v1/queues/q/jobs/absent", None, JOB),
    Row("POST /v1/queues/q/jobs/absent/cancel", {}, ("queue:q:read", "dict:q-steps:read")),
    Row("POST /v1/queues/q/jobs/absent/retry", {}, ("queue:q:read",)),
    Row("GET /v1/schedules", None, ("dict:holdfast-schedules:read", "dict:holdfast-workers:read")),
    Row("POST /v1/schedules/s/pause", {}, ("dict:holdfast-schedules:read",)),
    Row("POST /v1/schedules/s/resume", {}, ("dict:holdfast-schedules:read",)),
    Row("POST /v1/schedules/s/run", {}, ("dict:holdfast-schedules:read",)),
    Row("GET /v1/about", None, ()),
    Row("GET /openapi.json", None, ()),
]

# Every verb on the things that the rows name, on all of their kind, and on others; and those that stand for several.
NAMES = {
    "queue": ("q", "dead", "*", "r*"),
    "dict": ("d", "d*", "*", "e", "q-steps", "holdfast-schedules"),
    "lease": ("k", "*", "j"),
    "server": ("audit", "metrics"),
    "*": ("q",),
}
SCOPES = [f"{kind}:{name}:{verb}" for kind, names in NAMES.items() for name in names for verb in sorted(VERBS[kind])]
EVERYTHING = ["queue:*:*", "dict:*:*", "lease:*:*", "*", "*:*:*"]


def by_hand(scope: str, need: str) -> bool:
    """Whether a scope of this test is enough for a need of this test."""
    if need == "copied":
        return False  # This store has tokens, so nobody copies it through its server.
    if scope == "admin":
        return True
    if need == "admin":
        return False
    if scope == "*":
        scope = "*:*:*"
    kind, name, verb = scope.split(":")
    needed_kind, needed_name, needed_verb = need.split(":")
    fits_kind = kind == needed_kind or (kind == "*" and needed_kind != "server")
    fits_name = name in ("*", needed_name) or needed_name == "*any*" or (name.endswith("*") and needed_name.startswith(name[:-1]))
    return fits_kind and fits_name and verb in ("*", *needed_verb.split("|"))


@pytest.fixture(scope="module")
def inner() -> Store:
    return MemoryStore()


@pytest.fixture(scope="module")
def served(inner: Store) -> Iterator[Served]:
    served = Served(inner)
    make(inner, "admin")
    inner.execute(Configure("queue", "dead"))
    yield served
    served.close()


def status(pool: urllib3.PoolManager, served: Served, row: Row, token: str | None) -> int:
    """The answer's; 403 too where an answer names what was refused."""
    method, _, path = row.path.partition(" ")
    headers = JSON if token is None else JSON | {"Authorization": f"Bearer {token}"}
    given = row.body() if callable(row.body) else row.body
    body = None if given is None else json.encode(given)
    reply = pool.request(method, served.url + path, body=body, headers=headers, retries=False, timeout=PATIENCE_S)
    return 403 if path == "/v1/wait" and b'"refused"' in reply.data else reply.status


def paths_of(served: Served) -> set[str]:
    assert served.plane._served is not None
    app: Any = served.plane._served.app
    while not hasattr(app, "_methods"):
        app = app._app
    named = {f"{template.method} {template.path}" for template in app._templates}
    return named | {f"{method} {path}" for method, routes in app._methods.items() for path in routes}


def formed(path: str) -> str:
    """The path of a row as the document has it."""
    method, _, given = path.partition("?")[0].partition(" ")
    templates = [Template(spec.method, spec.path, no_app) for spec in FLOWS if spec.method == method]
    return f"{method} {next((each.path for each in templates if each.names_in(given) is not None), given)}"


async def no_app(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotImplementedError


def test_every_route_is_in_the_table_and_in_the_document(served: Served) -> None:
    listed = {formed(row.path) for row in ROWS} | {f"GET {path}" for path in OPEN}
    documented = {f"{method.upper()} {path}" for path, operations in openapi()["paths"].items() for method in operations}
    signals = {f"POST {SIGNAL_PATH}"}  # tests/server/test_signals.py has their permissions.
    assert paths_of(served) == listed | signals == documented | {"GET /openapi.json"}


@pytest.mark.parametrize("scope", [*SCOPES, *EVERYTHING, "admin"])
def test_a_token_with_one_scope_gets_as_far_as_the_scope_says(served: Served, inner: Store, scope: str) -> None:
    token = make(inner, scope, namespaces=("*",))
    with urllib3.PoolManager() as pool:
        allowed = [status(pool, served, row, token) != 403 for row in ROWS]
    assert allowed == [all(by_hand(scope, need) for need in row.needs) for row in ROWS]


@pytest.mark.parametrize("row", [row for row in ROWS if len(row.needs) > 1 and "admin" not in row.needs], ids=str)
def test_what_takes_several_scopes_takes_each_of_them(served: Served, inner: Store, row: Row) -> None:
    with urllib3.PoolManager() as pool:
        needs = [need.partition("|")[0] for need in row.needs]
        assert status(pool, served, row, make(inner, *needs)) != 403
        for missing in needs:
            others = [need for need in needs if need != missing]
            assert status(pool, served, row, make(inner, *others)) == 403, f"passed without {missing}"


def test_without_a_token_every_route_but_the_open_ones_is_closed(served: Served) -> None:
    with urllib3.PoolManager() as pool:
        assert {status(pool, served, row, None) for row in ROWS} == {401}
        assert {status(pool, served, Row(f"GET {path}", None, ()), None) for path in OPEN} == {200}
        for path in (
            "POST /",
            "GET /dashboard/",
            "GET /nothing",
            "PUT /v1/put",
            "POST /healthz/",
            "GET //healthz",
            "GET /ns/healthz",
            "GET /ns/a/healthz",
        ):
            assert status(pool, served, Row(path, None, ()), None) == 401, path


def test_no_scope_lets_anybody_make_a_token_over_the_wire(served: Served) -> None:
    assert [path for path in sorted(paths_of(served)) if "token" in path] == ["GET /v1/tokens"]
