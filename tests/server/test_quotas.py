"""Quotas: a namespace gets as much as its operator allows, whichever server it asks, and its neighbours do not notice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from holdfast import connect
from holdfast.commands import Acquire, Change, Claim, Clear, Command, Configure, Item, Names, Put, Together, Write
from holdfast.commands.events import RETAINED, RETAINED_S
from holdfast.errors import StoreFull
from holdfast.server.app import Options
from holdfast.server.namespaces.names import Namespace
from holdfast.server.namespaces.quotas import Quota, list_quotas, set_quota
from holdfast.server.namespaces.usage import RECORD_BYTES, Logged, count_bytes
from holdfast.stores import Store
from holdfast.stores.http.store import HttpStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import item
from holdfast.testing.conformance.threads import Doing, together
from tests.server.serving import Served
from tests.server.test_routes import until
from tests.server.test_tokens import ME, ask
from tests.stores_by_name import url_of

KIB = 1_024


@pytest.fixture(params=["sqlite", "lmdb", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def operator(url: str) -> Iterator[Store]:
    store = connect(url)
    yield store
    store.close()


@pytest.fixture
def served(url: str, operator: Store) -> Iterator[Served]:
    # A count that takes no time may be repeated at once, however busy the machine is.
    served = Served(connect(url), Options(now=lambda: 0.0))
    yield served
    served.close()


@pytest.fixture
def acme(served: Served) -> Iterator[HttpStore]:
    store = HttpStore(f"{served.url}/ns/acme")
    yield store
    store.close()


@pytest.fixture
def beta(served: Served) -> Iterator[HttpStore]:
    store = HttpStore(f"{served.url}/ns/beta")
    yield store
    store.close()


def put(store: Store, queue: str, message_id: str, size: int = 1) -> None:
    store.execute(Put(queue, [Item(message_id, Raw(b'"' + b"x" * size + b'"'))]))


def creates(store: Store, queue: str) -> bool:
    try:
        put(store, queue, "1")
    except StoreFull:
        return False
    return True


def test_no_more_queues_and_dicts_are_created_than_the_quota_allows(operator: Store, acme: HttpStore, beta: HttpStore) -> None:
    set_quota(operator, "acme", Quota(queues=2, dicts=1), by=ME)
    put(acme, "a", "1")
    with pytest.raises(StoreFull, match=r"namespace acme is limited to 2 queues, .* drop queues .*--queues"):
        acme.execute(Together([Put("b", [item("1")]), Put("c", [item("1")])]))
    acme.execute(Put("b", [Item("1", Raw(b"1"), dead_letter="a")]))
    creating: list[Command[Any]] = [Put("a", [Item("2", Raw(b"1"), dead_letter="c")]), Configure("queue", "c"), Put("c", [item("1")])]
    for command in creating:
        with pytest.raises(StoreFull, match="queues"):
            acme.execute(command)
    acme.execute(Write("d", [Change("k", value=Raw(b"1"))]))
    growing: list[Command[Any]] = [Write("e", [Change("k", value=Raw(b"1"))]), Acquire("e", "k", "me", "l", 60.0)]
    for command in growing:
        with pytest.raises(StoreFull, match="1 dicts"):
            acme.execute(command)
    put(acme, "a", "3")
    assert [each.name for each in acme.execute(Names("queue")).settings] == ["a", "b"]
    for queue in ("a", "b", "c"):
        put(beta, queue, "1")
    acme.execute(Clear("queue", "b", drop=True))
    put(acme, "c", "1")


def test_two_servers_together_create_no_more_than_the_quota_allows(url: str, operator: Store, acme: HttpStore) -> None:
    set_quota(operator, "acme", Quota(queues=5), by=ME)
    second = Served(connect(url))
    other = HttpStore(f"{second.url}/ns/acme")

    made = together(*(lambda store=store, n=n: creates(store, f"{n}-{store is other}") for n in range(4) for store in (acme, other)))
    assert sum(made) == 5
    assert len(acme.execute(Names("queue")).settings) == 5
    other.close()
    second.close()


def test_no_more_bytes_are_stored_than_the_quota_allows(operator: Store, acme: HttpStore, beta: HttpStore) -> None:
    set_quota(operator, "acme", Quota(bytes=10 * KIB), by=ME)
    put(acme, "a", "1", 4 * KIB)
    put(acme, "b", "1", 4 * KIB)
    with pytest.raises(StoreFull, match=r"namespace acme is limited to 10,240 bytes, .* delete something.*--bytes"):
        put(acme, "a", "2", 4 * KIB)
    with pytest.raises(StoreFull, match="bytes"):
        acme.execute(Together([Put("a", [Item("2", Raw(b'"%b"' % (b"x" * KIB * 4)))]), Configure("queue", "c")]))
    put(beta, "a", "1", 40 * KIB)
    put(acme, "a", "3")
    acme.execute(Clear("queue", "a"))
    put(acme, "a", "2", 4 * KIB)


def test_a_server_that_starts_counts_what_is_there(url: str, operator: Store, served: Served, acme: HttpStore) -> None:
    put(acme, "a", "1", 8 * KIB)
    acme.execute(Write("d", [Change("k", value=Raw(b'"%b"' % (b"x" * KIB)))]))
    set_quota(operator, "*", Quota(bytes=10 * KIB), by=ME)
    second = Served(connect(url))
    other = HttpStore(f"{second.url}/ns/acme")
    with pytest.raises(StoreFull, match="bytes"):
        put(other, "a", "2", KIB)
    other.close()
    second.close()


def test_what_the_log_of_a_dict_keeps_counts_too(operator: Store, acme: HttpStore) -> None:
    set_quota(operator, "acme", Quota(bytes=10 * KIB), by=ME)
    written = Write("d", [Change("k", value=Raw(b'"%b"' % (b"x" * KIB)))])
    for _ in range(6):
        acme.execute(written)
    with pytest.raises(StoreFull, match="log keeps each value"):
        acme.execute(written)


def test_no_more_requests_wait_than_the_quota_allows(operator: Store, served: Served) -> None:
    set_quota(operator, "acme", Quota(waits=1), by=ME)

    def claim(namespace: str, wait_s: float = 300) -> tuple[int, Any]:
        return ask(served, f"/ns/{namespace}/v1/claim?wait_s={wait_s}", {"queue": "jobs"})

    first = Doing(lambda: claim("acme"))
    until(lambda: len(served.plane._lasting) == 1)
    status, problem = claim("acme")
    assert (status, problem["code"]) == (429, "too_many_requests")
    assert "namespace acme may have 1 waits" in problem["detail"]
    assert ask(served, "/ns/acme/v1/wait", {"topics": [["queue:jobs"]]})[0] == 429
    assert ask(served, "/ns/acme/v1/watch?topic=queue:jobs", method="GET")[0] == 429
    assert claim("beta", 0.01)[0] == 200
    ask(served, "/ns/acme/v1/put", {"queue": "jobs", "items": [{"id": "a", "value": 1}]})
    assert first.result()[0] == 200
    assert claim("acme", 0.01)[0] == 200


def test_a_quota_is_changed_while_the_server_runs(operator: Store, acme: HttpStore) -> None:
    set_quota(operator, "acme", Quota(queues=0), by=ME)
    with pytest.raises(StoreFull):
        put(acme, "a", "1")
    set_quota(operator, "acme", Quota(), by=ME)
    assert list_quotas(operator) == {}
    until(lambda: creates(acme, "a"))


@pytest.mark.anyio
async def test_every_message_and_entry_is_counted_whatever_its_state(operator: Store, acme: HttpStore) -> None:
    for n in range(25):
        put(acme, "a", f"{n:04}")
        acme.execute(Write("d", [Change(f"{n:04}", value=Raw(b'"x"'))]))
    assert len(acme.execute(Claim("a", "me", 60.0, limit=5)).messages) == 5
    assert await count_bytes(operator.for_tasks(), Namespace.named("acme")) == 50 * (RECORD_BYTES + 4 + 3)
    assert await count_bytes(operator.for_tasks(), Namespace.named("beta")) == 0


def test_the_log_of_a_dict_counts_for_as_long_as_it_keeps_its_events() -> None:
    clock = FakeClock()
    log = Logged(lambda: clock.now_us() / 1e6)
    for _ in range(300):
        log.add(events=1_000, size_bytes=10_000)
    assert RETAINED * 10 <= log.size_bytes <= (RETAINED + 1_000) * 10
    clock.advance(RETAINED_S)
    assert log.size_bytes >= RETAINED * 10
    clock.advance(RETAINED_S / 50)
    assert log.size_bytes == 0
