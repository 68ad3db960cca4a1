"""A web page of another site does nothing here. The headers are those that a browser sends; no browser runs in these tests."""

from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from msgspec import json

from holdfast.server.app import Options
from holdfast.server.audit import Actor
from holdfast.server.auth.browsers import POLICY
from holdfast.server.auth.tokens import create_token
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance.threads import PATIENCE_S
from tests.server.serving import Served

PUT = json.encode({"queue": "jobs", "items": [{"id": "a", "value": 1}]})
JSON = {"Content-Type": "application/json"}
COPYING: dict[str, Any] = {
    "survey": {},
    "fences": {},
    "beginimport": {"source": "s", "survey": {"now": 0, "latest": 0, "next_n": 0}},
    "import": {"source": "s", "after": "", "place": "p", "checksum": ""},
    "endimport": {},
    "seal": {"to": "https://evil.example", "at": 0},
}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def served(store: MemoryStore) -> Iterator[Served]:
    served = Served(store)
    yield served
    served.close()


def ask(served: Served, path: str, body: bytes | None, method: str = "POST", **headers: str) -> urllib3.BaseHTTPResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return urllib3.request(method, served.url + path, body=body, headers=named, retries=False, timeout=PATIENCE_S)


def problem(reply: urllib3.BaseHTTPResponse) -> tuple[int, str]:
    return reply.status, reply.json()["code"]


def waiting(served: Served) -> int:
    count: int = ask(served, "/v1/count", b'{"queue":"jobs"}', **JSON).json()["ready"]
    return count


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "a word of later browsers"},
    ],
    ids=str,
)
def test_a_page_of_another_origin_is_refused_where_nobody_needs_a_token(served: Served, headers: dict[str, str]) -> None:
    for path, body in (("put", PUT), ("claim", b'{"queue":"jobs"}'), ("clear", b'{"kind":"queue","name":"jobs"}'), ("wait", b"{}")):
        assert problem(ask(served, f"/v1/{path}", body, **headers, **JSON)) == (403, "cross_origin")
    for path in ("/v1/watch?topic=queue:jobs", "/v1/audit", "/v1/about", "/metrics", "/openapi.json", "/ns/acme/v1/about"):
        assert problem(ask(served, path, None, "GET", **headers)) == (403, "cross_origin")
    assert waiting(served) == 0


def test_a_second_origin_does_not_hide_behind_the_first(served: Served) -> None:
    headers = urllib3.HTTPHeaderDict([*JSON.items(), ("Origin", own(served)), ("Origin", "https://evil.example")])
    reply = urllib3.request("POST", f"{served.url}/v1/put", body=PUT, headers=headers, retries=False)
    assert problem(reply) == (403, "cross_origin")


def test_the_servers_own_pages_and_programs_are_served(served: Served) -> None:
    assert ask(served, "/v1/put", PUT, **JSON).status == 200
    assert ask(served, "/v1/put", PUT, Origin=own(served), Sec_Fetch_Site="same-origin", **JSON).status == 200
    assert ask(served, "/v1/about", None, "GET", Sec_Fetch_Site="none").status == 200
    assert ask(served, "/v1/put", PUT, Host="localhost:7077", Origin="http://LOCALHOST:7077", **JSON).status == 200


def test_with_a_token_the_origin_does_not_matter_for_no_page_can_send_one(served: Served, store: MemoryStore) -> None:
    _, token = create_token(store, "test", ["*"], by=Actor("test", "here"))
    assert ask(served, "/v1/put", PUT, Origin="https://mine.example", Authorization=f"Bearer {token}", **JSON).status == 200


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "application/jsonx"]
)
def test_a_body_of_a_type_that_any_page_may_send_is_refused(served: Served, content_type: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    for path in ("put", "wait", "claim?wait_s=0"):
        assert problem(ask(served, f"/v1/{path}", PUT, **headers)) == (415, "wrong_content_type")
    assert waiting(served) == 0


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8", "application/json ;x=1"])
def test_json_is_taken_whatever_stands_behind_its_name(served: Served, content_type: str) -> None:
    assert ask(served, "/v1/put", PUT, Content_Type=content_type).status == 200


@pytest.mark.parametrize("path", COPYING)
def test_nobody_copies_a_store_without_a_token_unless_the_server_was_started_for_it(served: Served, path: str) -> None:
    reply = ask(served, f"/v1/{path}", json.encode(COPYING[path]), **JSON)
    assert problem(reply) == (403, "not_allowed")
    assert "--allow-copy" in reply.json()["detail"]


def test_a_server_started_for_it_takes_a_copy_from_anyone() -> None:
    served = Served(MemoryStore(), Options(allows_copy=True))
    assert ask(served, "/v1/survey", b"{}", **JSON).status == 200
    served.close()


@pytest.mark.parametrize("path", ["/healthz", "/v1/about", "/nothing", "/v1/watch?topic=queue:jobs&after=99", "/v1/watch?topic=queue:jobs"])
def test_every_answer_tells_browsers_to_do_nothing_with_it(served: Served, path: str) -> None:
    reply = urllib3.request("GET", served.url + path, preload_content=False, retries=False, timeout=PATIENCE_S)
    assert {name.lower(): value for name, value in reply.headers.items() if name.lower() in SAID} == SAID
    assert reply.headers.getlist("cache-control") == ["no-store"]
    reply.close()


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "OWN"}, {"Origin": "OWN", "Sec-Fetch-Site": "same-origin"}, {"Origin": "null"}, {"Origin": "https://evil.example"}],
)
def test_so_does_the_answer_to_whatever_a_page_posts(served: Served, headers: dict[str, str]) -> None:
    sent = {name: value.replace("OWN", own(served)) for name, value in headers.items()} | JSON
    assert SAID.items() <= dict(ask(served, "/v1/put", PUT, **sent).headers.items()).items()


def test_a_program_that_posts_is_told_nothing_that_only_browsers_read(served: Served) -> None:
    reply = ask(served, "/v1/put", PUT, **JSON)
    assert reply.status == 200
    assert not SAID.keys() & {name.lower() for name in reply.headers}


def test_a_program_that_is_refused_is(served: Served) -> None:
    assert SAID.items() <= dict(ask(served, "/v1/put", b"{", **JSON).headers.items()).items()


SAID = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def own(served: Served) -> str:
    return served.url.rpartition("/")[0]
