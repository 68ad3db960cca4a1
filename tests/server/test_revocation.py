"""Whoever waits while their token ends is sent away at once, although nothing that they wait for happens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from holdfast import connect
from holdfast.server.app import Options
from holdfast.server.auth.tokens import id_of, revoke_token
from holdfast.server.routes import command
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.threads import PATIENCE_S, Doing
from tests.server.serving import Served
from tests.server.test_routes import until
from tests.server.test_tokens import ME, ask, at_once, make
from tests.stores_by_name import url_of

NEVER_S = 3_600.0
QUIET = Options(heartbeat_s=NEVER_S, check_waiting_s=NEVER_S)
"""Nothing but a hint ends a wait."""


@pytest.fixture(autouse=True)
def no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "POLL_S", NEVER_S)


@pytest.fixture(params=["memory", "sqlite", "lmdb", "postgres", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """The store of a server, and the same of whoever makes and revokes tokens."""
    url = url_of(request.param, tmp_path)
    theirs, operators = connect(url), connect(url)
    yield theirs, operators
    operators.close()


def wait(served: Served, token: str | None) -> int:
    """Wait on a topic, again after each hint, for a store may hint without a reason; answer the status of the first refusal."""
    status, mark = 200, None
    while status == 200:
        status, answer = ask(served, "/v1/wait", {"topics": [["queue:jobs", mark]], "timeout_s": 300}, token)
        mark = answer["topics"][0][1] if status == 200 else None
    return status


class Waiting:
    """A watch, a wait and a claim that wait."""

    def __init__(self, served: Served, token: str | None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        url = f"{served.url}/v1/watch?topic=queue:jobs"
        self.watch: Doing[Any] = Doing(lambda: urllib3.request("GET", url, headers=headers, retries=False, timeout=PATIENCE_S))
        self.wait: Doing[int] = Doing(lambda: wait(served, token))
        self.claim: Doing[Any] = Doing(lambda: ask(served, "/v1/claim?wait_s=300", {"queue": "jobs"}, token))
        until(lambda: len(served.plane._lasting) >= 3)

    def check_ended(self) -> None:
        assert self.claim.result("a claim of somebody unwelcome")[0] == 401
        assert self.wait.result("a wait of somebody unwelcome") == 401
        assert self.watch.result("a watch of somebody unwelcome").data == b": watching\n\n"


def test_revoking_ends_what_waits_at_once_and_nobody_elses_wait(stores: tuple[Store, Store]) -> None:
    theirs, operators = stores
    token, other = make(operators), make(operators)
    served = Served(theirs, QUIET)
    waiting = Waiting(served, token)
    neighbour: Doing[Any] = Doing(lambda: ask(served, "/v1/claim?wait_s=300", {"queue": "jobs"}, other))
    until(lambda: len(served.plane._lasting) == 4)
    revoke_token(operators, id_of(token) or "", by=ME, rest=at_once)
    waiting.check_ended()
    assert not neighbour.is_over
    ask(served, "/v1/put", {"queue": "jobs", "items": [{"id": "a", "value": 1}]}, other)
    assert [each["id"] for each in neighbour.result("the claim of a neighbour")[1]["messages"]] == ["a"]
    served.close()


def test_the_first_token_ends_what_waits_without_one(stores: tuple[Store, Store]) -> None:
    theirs, operators = stores
    served = Served(theirs, QUIET)
    waiting = Waiting(served, None)
    make(operators)
    waiting.check_ended()
    served.close()


def test_a_token_that_expires_ends_what_waits_though_no_hint_comes() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    token = make(store, expires_s=60)
    served = Served(store, Options(heartbeat_s=NEVER_S, check_waiting_s=0.01, now=lambda: clock.now_us() / 1e6))
    waiting = Waiting(served, token)
    clock.advance(61)
    waiting.check_ended()
    served.close()
