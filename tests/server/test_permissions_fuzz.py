"""Requests generated from the OpenAPI document, sent with tokens of every scope: nobody gets further than a table by hand says."""

import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from msgspec import Struct

from holdfast.connect import connect
from holdfast.server.auth.scope_presets import worker_grants
from holdfast.stores import Store
from tests.server.processes import Process
from tests.server.test_openapi import ROUTES
from tests.server.test_permissions import EVERYTHING, SCOPES, by_hand
from tests.server.test_tokens import make
from tests.stores_by_name import url_of

_log = logging.getLogger(__name__)

Case = schemathesis.Case[Any]
MIB = 2**20
POOL = {"queue": ("q", "dead", "r1"), "dict": ("d", "d2", "e"), "lease": ("k", "j")}
"""Names that some scope of the table is about: random ones would hit none."""

NAMED = {"queue": "queue", "dead_letter": "queue", "to_queue": "queue", "dict": "dict"}
ADMINS = {"/v1/prune", "/v1/survey", "/v1/fences", "/v1/import", "/v1/endimport", "/v1/tokens"}
VERBS = {"put": "put", "claim": "claim", "browse": "read", "count": "read", "read": "read", "length": "read", "write": "write"}


def in_pool(value: Any, kind: str) -> Any:
    names = POOL[kind]
    return names[len(value) % len(names)] if isinstance(value, str) else value


def pooled(body: Any) -> Any:
    """The body, about things that scopes are about."""
    if isinstance(body, list):
        return [pooled(each) for each in body]
    if not isinstance(body, dict):
        return body
    named = {name: in_pool(value, NAMED[name]) if name in NAMED else pooled(value) for name, value in body.items()}
    kind = named.get("kind")
    if isinstance(kind, str) and kind in POOL and "name" in named:
        named["name"] = in_pool(named["name"], kind)
    if "topic" in named and isinstance(named["topic"], str):
        named["topic"] = ("queue:q", "dict:d", "lease::k", "elsewhere")[len(named["topic"]) % 4]
    return named


def needs(path: str, body: Any) -> list[str]:
    """By hand, what a request takes at least; it may take more."""
    if path in ADMINS:
        return ["admin"]
    if path in ("/v1/audit", "/metrics"):
        return [f"server:{path.rpartition('/')[2]}:read"]
    if path == "/v1/activity":
        return [f"queue:{name.replace(':', '_')}:read" for name in body["queues"]]
    if path == "/v1/together":
        return [need for each in body["commands"] for need in needs(f"/v1/{each['type'].lower()}", each)]
    if path == "/v1/changes":
        return [{"queue:q": "queue:q:read", "dict:d": "dict:d:read", "lease::k": "lease:k:read"}.get(body["topic"], "admin")]
    return [f"{kind}:{name.replace(':', '_')}:{verb}" for kind, name, verb in _named(path.rpartition("/")[2], body)]


def _named(command: str, body: Any) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    if command in ("move", "clear"):
        found.append((body.get("kind", "queue"), body.get("queue") or body.get("name"), "manage"))
    elif command in VERBS:
        kind = "queue" if "queue" in body else "dict"
        found.append((kind, body[kind], VERBS[command]))
    elif command in ("acquire", "look") and body["dict"] is not None:
        found.append(("dict", body["dict"], "hold" if command == "acquire" else "read"))
    elif command == "names":
        found.append((body["kind"], f"{body.get('prefix', '')}*", "read"))
    if command in ("put", "claim"):
        dead = [each.get("dead_letter") for each in (*body.get("items", ()), body) if each.get("dead_letter")]
        found += [("queue", name, "put") for name in dead]
    if command == "move" and body.get("to_queue"):
        found.append(("queue", body["to_queue"], "put"))
    if command in ("extend", "settle"):
        found += [("queue", queue, "claim") for queue, *_ in body["receipts"]]
    return found


class Bearer(Struct, frozen=True):
    """A token, what it is for, and where."""

    text: str | None
    scopes: tuple[str, ...] = ()
    namespace: str = "default"


class Fuzzed:
    """A server process, the tokens that are tried on it, and what came of it."""

    def __init__(self, process: Process, bearers: list[Bearer]) -> None:
        self.process = process
        self._bearers = bearers
        self._session = requests.Session()
        self._begun_bytes = self.memory_bytes()
        self.cases = 0
        self.allowed = 0

    def memory_bytes(self) -> int:
        return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(self.process.pid)], text=True)) * 1024  # noqa: S607 - wherever it is

    def check(self, case: Case) -> None:
        """Send it with every token."""
        case.query.pop("wait_s", None)  # Nothing would come, so it would only wait.
        if case.path == "/v1/wait" and isinstance(case.body, dict):
            case.body["timeout_s"] = 0
        if self.cases % 4:
            case.body = pooled(case.body)
        prefix = "" if self.cases % 7 else "/ns/acme"
        request = case.as_transport_kwargs(base_url=self.process.url + prefix)
        headers = dict(request.pop("headers", None) or {})
        for bearer in self._bearers:
            self.cases += 1
            signed = headers if bearer.text is None else headers | {"Authorization": f"Bearer {bearer.text}"}
            reply = self._session.request(**request, headers=signed)
            self._judge(case, bearer, reply.status_code, reply.content, elsewhere=bool(prefix))

    def _judge(self, case: Case, bearer: Bearer, status: int, answer: bytes, *, elsewhere: bool) -> None:
        said = f"{status} {answer[:500]!r} for {bearer.scopes} in {bearer.namespace}: {case.method} {case.path} {str(case.body)[:500]}"
        assert status < 500, said
        if status >= 300 or case.path in ("/healthz", "/readyz"):
            return
        self.allowed += 1
        assert bearer.text is not None, said
        assert bearer.namespace in ("*", "acme" if elsewhere else "default") or (bearer.namespace == "acme" and not elsewhere), said
        for need in needs(case.path, case.body):
            assert any(by_hand(scope, need) for scope in bearer.scopes), f"it takes {need}: {said}"

    def end(self) -> None:
        """Look at what it left behind."""
        grown = self.memory_bytes() - self._begun_bytes
        _log.info("%d cases, %d of them allowed; memory grew by %.0f MiB", self.cases, self.allowed, grown / MIB)
        assert grown < 200 * MIB
        assert not [line for line in self.process.log if "Traceback" in line or " ERROR " in line]
        # Most are wrong on purpose, and most tokens may do little.
        assert self.allowed > self.cases // 500, "it was not only refused"


def bearers_of(store: Store) -> list[Bearer]:
    """Nobody, every scope alone, those that stand for several, a worker's, and some of another namespace."""
    worker = [scope for grant in worker_grants("q") for scope in one_by_one(grant.scope)]
    here = [Bearer(make(store, scope), (scope,)) for scope in (*SCOPES, *EVERYTHING)]
    # An administrator of one namespace may do everything in it, and nothing to the server.
    here += [Bearer(make(store, "admin"), ("*",)), Bearer(make(store, *worker), tuple(worker))]
    other = [Bearer(make(store, *scopes, namespaces=("acme",)), scopes, "acme") for scopes in (("*",), ("queue:q:*",), ("dict:*:read",))]
    everywhere = [Bearer(make(store, *scopes, namespaces=("*",)), scopes, "*") for scopes in (("*",), ("admin",), ("queue:*:claim",))]
    return [Bearer(None), *here, *other, *everywhere]


def one_by_one(scope: str) -> list[str]:
    """The scope as several, of one verb each."""
    head, _, verbs = scope.rpartition(":")
    return [f"{head}:{verb}" for verb in verbs.split(",")]


@contextmanager
def fuzzed(kind: str, folder: Path) -> Iterator[Fuzzed]:
    url = url_of(kind, folder)
    store = connect(url)
    bearers = bearers_of(store)
    with Process(url, "--max-rate-each=100000") as process:
        fuzzed = Fuzzed(process, bearers)
        yield fuzzed
        fuzzed.end()
    store.close()


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with fuzzed("sqlite", tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture(scope="module", params=["postgres", "redis"])
def on_another(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with fuzzed(request.param, tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.mark.verify
@pytest.mark.timeout(3_600)
@ROUTES.parametrize()
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_token_gets_further_than_its_scopes(case: Case, on_sqlite: Fuzzed) -> None:
    on_sqlite.check(case)


@pytest.mark.verify
@pytest.mark.timeout(3_600)
@ROUTES.parametrize()
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_token_gets_further_than_its_scopes_on_another_store(case: Case, on_another: Fuzzed) -> None:
    on_another.check(case)
