"""The HTTP store against a real server: lost answers, lost servers, cancelled callers, waits without polling."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from itertools import pairwise

import pytest
from msgspec.structs import replace
from urllib3.connection import HTTPConnection

from holdfast import connect
from holdfast.client import ControlPlaneClient
from holdfast.commands import Acquire, Change, Claim, Count, Look, Put, Read, Together, Write
from holdfast.commands.topics import queue_topic
from holdfast.errors import Closed, OutcomeUnknown, StoreError, StoreUnavailable
from holdfast.stores.http import connections, listening
from holdfast.stores.http.connections import JOINED_BYTES
from holdfast.stores.http.protocol import Waited
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.retrying import Patience
from holdfast.testing.conformance.asking import claim, item, put, raw, read
from holdfast.testing.conformance.threads import Doing, all_asleep
from holdfast.testing.conformance.waiting import WaitingClaim, waiting_claim
from tests.server.serving import Served
from tests.server.test_routes import until
from tests.stores.http.proxies import Proxy

INCREMENT = Write("d", [Change("n", do="increment", by=1)])


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served(MemoryStore())
    yield served
    served.close()


@pytest.fixture
def proxy(served: Served) -> Iterator[Proxy]:
    with Proxy(served.url) as proxy:
        yield proxy


@pytest.fixture
def store(proxy: Proxy) -> Iterator[HttpStore]:
    store = HttpStore(proxy.url)
    yield store
    store.close()


def sends_of(store: HttpStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a socket is written to for a short command, a long one and a question without a body."""
    sizes, send = list[int](), HTTPConnection.send

    def count(connection: HTTPConnection, data: bytes) -> None:
        sizes.append(len(data))
        send(connection, data)

    with monkeypatch.context() as patched:
        patched.setattr(HTTPConnection, "send", count)
        counts = [0]
        for ask in (
            lambda: put(store, "short"),
            lambda: store.execute(Put("jobs", [item("long", "x" * JOINED_BYTES)])),
            lambda: HttpStore(store.url).about,
        ):
            ask()
            counts.append(len(sizes))
    return [after - before for before, after in pairwise(counts)]


def test_a_short_command_is_sent_as_one(store: HttpStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sends_of(store, monkeypatch) == [1, 2, 1]


def test_control_a_head_that_does_not_wait_for_its_body_is_sent_alone(store: HttpStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(connections, "_AtOnce", HTTPConnection)
        plain = HttpStore(store.url)
        assert sends_of(plain, monkeypatch)[0] == 2
        plain.close()


def test_a_command_whose_answer_was_lost_is_applied_once(store: HttpStore, proxy: Proxy) -> None:
    store.execute(INCREMENT)
    proxy.lose_answers = 3
    store.execute(INCREMENT)
    assert proxy.lost == 3
    assert read(store, dict="d") == {"n": 2}


def test_control_without_an_id_a_lost_answer_applies_it_twice(store: HttpStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores._sync.networked.named", lambda command: command)
    store.execute(INCREMENT)
    proxy.lose_answers = 3
    store.execute(INCREMENT)
    assert read(store, dict="d") == {"n": 5}


@pytest.mark.anyio
async def test_a_command_of_a_task_whose_answer_was_lost_is_applied_once(store: HttpStore, proxy: Proxy) -> None:
    face = store.for_tasks()
    await face.execute(INCREMENT)
    proxy.lose_answers = 3
    await face.execute(INCREMENT)
    entries = await face.execute(Read("d"))
    await face.aclose()
    assert proxy.lost == 3
    assert bytes(entries.entries[0].value) == b"2"


def test_a_claim_whose_answer_was_lost_hands_out_the_same_message(store: HttpStore, proxy: Proxy) -> None:
    put(store, "a", "b")
    proxy.lose_answers = 1
    assert [message.id for message in claim(store)] == ["a"]
    assert store.execute(Count("jobs")).leased == 1


def test_when_no_answer_ever_comes_the_outcome_is_unknown(served: Served, proxy: Proxy) -> None:
    store = HttpStore(proxy.url, patience=Patience(most_s=0.05))
    proxy.lose_answers = 1_000
    with pytest.raises(OutcomeUnknown, match="may have been applied"):
        store.execute(INCREMENT)
    store.close()


def test_when_the_server_is_not_there_nothing_was_written() -> None:
    store = HttpStore("http://127.0.0.1:9", patience=Patience(most_s=0.05))
    with pytest.raises(StoreUnavailable, match="nothing was written") as refused:
        store.execute(INCREMENT)
    assert not isinstance(refused.value, OutcomeUnknown)
    store.close()


def test_a_server_that_never_answered_is_given_up_sooner_than_one_that_did(served: Served) -> None:
    store = HttpStore(served.url)
    before = store.patience.most_s
    put(store, "a")
    assert before < store.patience.most_s == Patience().most_s
    store.close()


def test_closing_ends_the_tries_of_a_command() -> None:
    store = HttpStore("http://127.0.0.1:9")
    doing = Doing(lambda: store.execute(INCREMENT))
    store.close()
    with pytest.raises(Closed):
        doing.result("a command on a store that was closed")


def test_something_that_is_no_holdfast_server_is_named(served: Served) -> None:
    store = HttpStore(f"{served.url}/elsewhere")
    with pytest.raises(StoreError, match="unknown path"):
        store.execute(INCREMENT)
    store.close()


def test_a_wait_that_was_cut_short_for_another_that_has_ended_is_no_failure(store: HttpStore, caplog: pytest.LogCaptureFixture) -> None:
    with store.listener.on("queue:jobs") as announced:
        assert announced is not None
        announced.result(60)
        until(lambda: store.listener._socket is not None)
        with store.listener._changed:
            store.listener._ask_again()
        until(lambda: store.listener._socket is not None)
    assert caplog.messages == []


def test_a_wait_sends_nothing_while_nothing_happens(store: HttpStore, proxy: Proxy) -> None:
    waiter = WaitingClaim(store, "jobs")
    # It asks, and once more when the server has said that it listens; then it waits from a mark.
    until(lambda: (sent := b"".join(proxy.requests)).count(b'"Claim"') == 2 and sent.count(b'"timeout_s"') == 2)
    before = len(proxy.requests)
    all_asleep(waiter)
    assert len(proxy.requests) == before
    put(store, "a")
    assert [message.id for message in waiter.result("a claim that waited")] == ["a"]


def test_many_waits_on_many_topics_share_one_connection(store: HttpStore, served: Served) -> None:
    queues = [f"q{number}" for number in range(20)]
    waiters = [WaitingClaim(store, queue) for queue in queues]
    all_asleep(*waiters)
    until(lambda: len(served.plane._lasting) == 1)
    for queue in queues:
        put(store, queue, queue=queue)
    assert [waiter.result("a claim")[0].id for waiter in waiters] == queues


def test_waits_on_more_topics_than_one_request_takes_still_end(store: HttpStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores.http.listening.TOPICS_MAX", 3)
    queues = [f"q{number}" for number in range(6)]
    waiters = [Doing(lambda queue=queue: claim_polling(store, queue)) for queue in queues]  # type: ignore[misc]
    all_asleep(*waiters)
    for queue in queues:
        put(store, queue, queue=queue)
    assert [waiter.result("a claim") for waiter in waiters] == queues


def claim_polling(store: HttpStore, queue: str) -> str:
    """Claim a message, asking again now and then as every flow does; its id."""
    with store.mark(queue_topic(queue)) as mark:
        while not (messages := claim(store, queue=queue)):
            store.wait(mark, 1_000.0, None, 0.2)
        return messages[0].id


def test_a_wake_up_that_comes_while_the_line_was_cut_is_heard_later(store: HttpStore, proxy: Proxy, served: Served) -> None:
    waiter = waiting_claim(store)
    other = HttpStore(served.url)
    proxy.lose_answers = 1  # The answer to the wait, that tells of the put.
    put(other, "a")
    other.close()
    assert [message.id for message in waiter.result("a claim whose wake-up was lost")] == ["a"]
    assert proxy.lost == 1


@pytest.mark.anyio
async def test_what_a_cancelled_task_claimed_is_given_back(served: Served) -> None:
    store = HttpStore(served.url)
    face = store.for_tasks()
    await face.execute(Put("jobs", [item("a")]))
    for command in (Claim("jobs", "me", 60.0), Acquire(None, "lock", "me", "mine", 60.0)):
        task = asyncio.create_task(face.execute(command))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await face.aclose()  # Which lets what is being given back be given back.
    look = HttpStore(served.url)
    assert look.execute(Count("jobs")).leased == 0
    assert look.execute(Look(None, ["lock"])).leases == [None]
    look.close()


def test_a_forked_child_uses_connections_of_its_own(served: Served) -> None:
    store = HttpStore(served.url)
    put(store, "a")
    if (child := os.fork()) == 0:
        try:
            claimed = claim(store)
            os._exit(0 if [message.id for message in claimed] == ["a"] else 1)
        except BaseException:  # noqa: BLE001 - the child must not go on as the parent
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.execute(Count("jobs")).leased == 1
    store.close()


def test_the_guarantees_are_those_of_the_store_behind_the_server(store: HttpStore) -> None:
    assert store.guarantees == MemoryStore().guarantees


def test_answers_of_several_commands_have_the_types_of_each(store: HttpStore) -> None:
    put(store, "a")
    claimed, written = store.execute(Together([Claim("jobs", "me", 9.0), INCREMENT]))
    assert claimed.messages[0].id == "a"
    assert written[0].entry.value == raw(1)


def test_a_client_reaches_a_server_by_its_url(served: Served) -> None:
    with ControlPlaneClient(served.url, token="any") as client:  # noqa: S106 - no real one
        put(client.store, "a")
        assert "any" not in repr(client)
    assert isinstance(connect(served.url), HttpStore)


@pytest.mark.parametrize("url", ["http://", "http://ann:pw@host", "http://host?x=1", "http://host#x", "http://ann:pw", "http://["])
def test_a_url_that_names_no_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="http") as refused:
        connect(url)
    assert "pw" not in str(refused.value)


def test_a_token_is_never_shown() -> None:
    store = HttpStore("http://localhost:1/base/", token="s3cret")  # noqa: S106 - no real one
    assert "s3cret" not in f"{store.address!r} {store.address} {store.url}"
    assert store.url == "http://localhost:1/base"
    assert store.address.headers()["authorization"] == "Bearer s3cret"
    with pytest.raises(ValueError, match="copy it again") as refused:
        replace(store.address).parse("http://localhost", "two\nlines")
    assert "lines" not in str(refused.value)
    store.close()


def test_eight_threads_share_one_store(store: HttpStore) -> None:
    threads = [threading.Thread(target=lambda: [store.execute(INCREMENT) for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read(store, dict="d") == {"n": 160}


def test_a_topic_asked_for_while_an_answer_comes_is_heard_of_without_a_failure(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, asked = HttpStore(served.url), list[Future[None] | None]()

    def asking(body: bytes, decode: Callable[[bytes], Waited] = listening._decode) -> Waited:
        if not asked:
            asked.append(waits.enter_context(store.listener.on("queue:late")))
        return decode(body)

    monkeypatch.setattr(listening, "_decode", asking)
    with ExitStack() as waits:
        first = waits.enter_context(store.listener.on("queue:first"))
        assert first is not None
        first.result(60)
        assert asked[0] is not None
        asked[0].result(60)
        assert store.listener.hears_of("queue:late")
    store.close()
    assert not caplog.records
