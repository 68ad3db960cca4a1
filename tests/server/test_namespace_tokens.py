"""Whoever may look at the server with a token of one namespace sees that namespace alone."""

from collections.abc import Iterator

import pytest
import urllib3
from msgspec import json

from holdfast.commands import Clear, Put
from holdfast.server.audit import AUDIT_PAGE, Act, Actor, recorded
from holdfast.server.metrics import QUEUES
from holdfast.server.routes import audit
from holdfast.stores import Store
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance.asking import item
from tests.server.serving import Served
from tests.server.test_tokens import make

TENANTS = {"default": "orders", "acme": "rockets", "beta": "tests"}
"""Each with a queue of its own."""


@pytest.fixture
def inner() -> Store:
    return MemoryStore()


@pytest.fixture
def served(inner: Store) -> Iterator[Served]:
    served = Served(inner)
    for namespace, queue in TENANTS.items():
        store = HttpStore(f"{served.url}/ns/{namespace}", token=make(inner, "*", namespaces=(namespace,)))
        store.execute(Put(queue, [item("a")]))
        store.execute(Clear("queue", queue))
        store.close()
    yield served
    served.close()


def seen(served: Served, path: str, token: str) -> str:
    headers = {"Authorization": f"Bearer {token}"}
    reply = urllib3.request("GET", served.url + path, headers=headers, retries=False)
    assert reply.status == 200
    return reply.data.decode()


@pytest.mark.parametrize("path", ["/metrics", "/v1/audit"])
@pytest.mark.parametrize("namespace", TENANTS)
def test_a_token_of_one_namespace_sees_that_alone(served: Served, inner: Store, path: str, namespace: str) -> None:
    told = seen(served, path, make(inner, "server:*:read", namespaces=(namespace,)))
    assert [queue for queue in TENANTS.values() if queue in told] == [TENANTS[namespace]]
    assert [other for other in TENANTS if f" {other}/" in told] == [], "its own names stand as it knows them"
    assert "create token" not in told


def test_a_token_of_one_namespace_is_not_told_that_something_was_done_in_others(served: Served, inner: Store) -> None:
    asked = {"topics": [["watch:audit"]], "timeout_s": 0}
    for namespaces, refused in ((("acme",), ["watch:audit"]), (("*",), [])):
        headers = {"Authorization": f"Bearer {make(inner, 'server:*:read', namespaces=namespaces)}"}
        waited = urllib3.request("POST", f"{served.url}/v1/wait", json=asked, headers=headers, retries=False).json()
        assert waited.get("refused", []) == refused


@pytest.mark.parametrize("path", ["/metrics", "/v1/audit"])
def test_a_token_of_all_namespaces_sees_all(served: Served, inner: Store, path: str) -> None:
    told = seen(served, path, make(inner, "server:*:read", namespaces=("*",)))
    assert all(queue in told for queue in TENANTS.values())


def test_a_page_of_the_audit_is_not_empty_because_others_did_more(served: Served, inner: Store) -> None:
    store = HttpStore(f"{served.url}/ns/acme", token=make(inner, "*", namespaces=("acme",)))
    for _ in range(5):
        store.execute(Clear("queue", "rockets"))
    store.close()
    token = make(inner, "server:audit:read", namespaces=("beta",))
    page = json.decode(seen(served, "/v1/audit?limit=1", token))
    assert [record["what"] for record in page["records"]] == ["queue:tests"]
    rest = json.decode(seen(served, f"/v1/audit?limit={AUDIT_PAGE}&after={page['records'][-1]['id']}", token))
    assert rest == {"records": [], "more": False, "after": None}
    assert (
        urllib3.request("GET", f"{served.url}/v1/audit?limit=0", headers={"Authorization": f"Bearer {token}"}, retries=False).status == 422
    )


def test_a_tenant_with_many_queues_does_not_push_others_out_of_the_metrics(served: Served, inner: Store) -> None:
    store = HttpStore(f"{served.url}/ns/acme", token=make(inner, "*", namespaces=("acme",)))
    for n in range(QUEUES + 50):
        store.execute(Put(f"a-{n:04}", [item("a")]))
    store.close()
    later = HttpStore(f"{served.url}/ns/beta", token=make(inner, "*", namespaces=("beta",)))
    later.execute(Put("new", [item("a")]))
    later.close()
    told = seen(served, "/metrics", make(inner, "server:*:read", namespaces=("*",)))
    shown = {line.partition('"')[2].partition('"')[0] for line in told.splitlines() if line.startswith("holdfast_queue_messages{")}
    assert shown >= {"orders", " beta/new", " beta/tests"}
    assert len(shown) == QUEUES
    assert 'holdfast_messages_total{queue=" beta/new",op="put"} 1' in told
    assert 'holdfast_messages_total{queue="new",' in seen(served, "/metrics", make(inner, "server:*:read", namespaces=("beta",)))


def test_a_request_for_the_audit_of_one_tenant_walks_through_so_much_and_says_where_to_go_on(
    served: Served, inner: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "PAGES", 2)
    monkeypatch.setattr(audit, "AUDIT_PAGE", 3)
    for _ in range(20):
        inner.execute(recorded(Actor("somebody", "here", "acme"), Act("clear", "queue:rockets")))
    inner.execute(recorded(Actor("somebody", "here", "beta"), Act("clear", "queue:last")))
    token = make(inner, "server:audit:read", namespaces=("beta",))
    records, after, pages = list[str](), "", 0
    while after is not None:
        page = json.decode(seen(served, f"/v1/audit?limit=3&after={after}", token))
        records += [record["what"] for record in page["records"]]
        after, pages = page["after"], pages + 1
        assert page["more"] is (after is not None)
    assert records == ["queue:tests", "queue:last"]
    assert pages >= 4, "6 of more than 20 records in each request"
