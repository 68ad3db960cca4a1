"""Limits: whoever is slow, endless or too many is refused, and the others are served."""

import asyncio
import select
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from msgspec import json
from uvicorn import Config
from uvicorn.server import ServerState

from holdfast.server import request_bodies
from holdfast.server.app import ControlPlane, Options
from holdfast.server.asgi import Scope
from holdfast.server.auth.callers import KEY, anyone
from holdfast.server.layers.limits import InFlight
from holdfast.server.load.body_budget import MIB, Budget
from holdfast.server.namespaces.names import DEFAULT
from holdfast.server.process import uvicorn_server as server_serving
from holdfast.server.process.connections import Connection
from holdfast.server.process.network_policy import Exposure
from holdfast.server.process.uvicorn_server import Server, serving
from holdfast.stores.http.problems import WireError
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance.threads import PATIENCE_S, Doing
from tests.server.serving import JSON, Served
from tests.server.test_routes import until
from tests.server.test_tokens import make


async def stay() -> None:
    """Everyone is welcome."""


SOMEBODY = anyone("here", DEFAULT, stay, lambda: False, may_copy=False)


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Connection, "head_s", 0.2)
    with serving(Server(ControlPlane(MemoryStore()), Exposure(port=0))) as url:
        yield url


def opened(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def is_hung_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


def lives(url: str) -> bool:
    return urllib3.request("GET", f"{url}/healthz", retries=False).status == 200


@pytest.mark.parametrize("head", [b"", b"POST /v1/put HTTP/1.1\r\nhost: loc"])
def test_whoever_never_ends_the_head_of_a_request_is_hung_up_on(url: str, head: bytes) -> None:
    slow = opened(url)
    slow.sendall(head)
    assert lives(url)
    assert is_hung_up(slow)
    slow.close()


def test_a_second_request_whose_head_never_ends_is_hung_up_on_too(url: str) -> None:
    slow = opened(url)
    slow.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert slow.recv(1000).startswith(b"HTTP/1.1 200")
    slow.sendall(b"GET /healthz HTTP/1.1\r\nhost: loc")
    assert is_hung_up(slow)
    slow.close()


@pytest.mark.parametrize("part", [b"x" * 8192, b"x: y\r\n" * 1365])
def test_an_endless_head_is_hung_up_on(url: str, part: bytes) -> None:
    endless = opened(url)
    with pytest.raises(OSError, match=r"reset|Broken pipe"):  # noqa: PT012 - it may come with any of them
        endless.sendall(b"GET /healthz HTTP/1.1\r\nx: ")
        for _ in range(1_000):
            endless.sendall(part)
    endless.close()
    assert lives(url)


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /v1/put HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/put HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST /v1/put HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked, identity\r\n\r\n",
        b"POST /v1/put HTTP/1.1\nhost: localhost\ncontent-length : 5\n\nhello",
        b"GET  HTTP/1.1\r\n\r\n",
    ],
)
def test_a_request_that_could_be_two_is_refused(url: str, request_: bytes) -> None:
    smuggler = opened(url)
    smuggler.sendall(request_)
    answered = smuggler.recv(1000)
    assert answered == b"" or answered.startswith(b"HTTP/1.1 400")
    assert is_hung_up(smuggler)
    smuggler.close()


@pytest.mark.anyio
async def test_a_body_that_comes_too_slowly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_bodies, "BODY_S", 0.01)

    async def never() -> Any:
        await asyncio.Event().wait()

    with pytest.raises(WireError) as refused:
        await request_bodies.Bodies(Budget(bool)).decoded(
            {"headers": [(b"content-type", b"application/json")], KEY: SOMEBODY}, never, bytes
        )
    assert refused.value.problem.status == 408
    assert (b"connection", b"close") in refused.value.headers


@pytest.mark.anyio
async def test_more_requests_at_once_than_allowed_are_told_to_come_again() -> None:
    served = asyncio.Event()

    async def work(*_: object) -> None:
        await served.wait()

    limited = InFlight(work, most=2)
    scope: Scope = {"path": "/v1/put", "query_string": b""}
    under_way = [asyncio.ensure_future(limited(scope, work, work)) for _ in range(2)]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    with pytest.raises(WireError) as refused:
        await limited(scope, work, work)  # type: ignore[arg-type]
    assert (refused.value.problem.status, refused.value.headers[0]) == (503, (b"retry-after", b"1"))
    served.set()
    await asyncio.gather(*under_way)
    await limited(scope, work, work)  # type: ignore[arg-type]
    assert limited.count == 0


@pytest.mark.parametrize("path", ["/v1/put", "/v1/claim?wait_s=1", "/v1/wait", "/ns/a/v1/wait"])
def test_a_request_counts_while_its_body_comes_whatever_it_is(path: str) -> None:
    with serving(Server(ControlPlane(MemoryStore(), Options(in_flight=1)), Exposure(port=0))) as url:
        slow = opened(url)
        slow.sendall(
            b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{" % path.encode()
        )
        until(lambda: not lives(url))
        slow.close()
        until(lambda: lives(url))


def test_the_slow_bodies_of_one_token_leave_room_for_others() -> None:
    store = MemoryStore()
    slow_token, other_token = make(store, "queue:q:put"), make(store, "queue:q:read")
    with serving(Server(ControlPlane(store, Options(in_flight_each=1)), Exposure(port=0))) as url:

        def count(token: str) -> int:
            headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
            return urllib3.request("POST", f"{url}/v1/count", body=b'{"queue":"q"}', headers=headers, retries=False).status

        head = b"POST /v1/put HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer %s\r\ncontent-type: application/json\r\n"
        slow = opened(url)
        slow.sendall(head % slow_token.encode() + b"content-length: 99\r\n\r\n{")
        # One of the two is refused, whichever came second: if it is the slow one, it gets an answer.
        while count(slow_token) != 429:
            if select.select([slow], [], [], 0.01)[0]:
                slow.close()
                slow = opened(url)
                slow.sendall(head % slow_token.encode() + b"content-length: 99\r\n\r\n{")
        assert count(other_token) == 200
        slow.close()
        until(lambda: count(slow_token) == 403)


@pytest.mark.parametrize(("most", "most_each", "status"), [(3 * MIB, 9 * MIB, 503), (9 * MIB, 3 * MIB, 429)])
@pytest.mark.parametrize("length", [b"content-length: 2000000", b"transfer-encoding: chunked"])
def test_bodies_that_are_held_open_take_so_much_memory_and_no_more(most: int, most_each: int, status: int, length: bytes) -> None:
    options = Options(reading_bytes=most, reading_bytes_each=most_each)
    with serving(Server(ControlPlane(MemoryStore(), options), Exposure(port=0))) as url:
        head = b"POST /v1/claim?x HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n%s\r\n\r\n" % length
        first, second = opened(url), opened(url)
        chunk = b"%x\r\n%s\r\n" % (1_900_000, b" " * 1_900_000) if b"chunked" in length else b" " * 1_900_000
        for held in (first, second):
            held.sendall(head + chunk)
        refused = b"HTTP/1.1 %d" % status
        ready, _, _ = select.select([first, second], [], [], PATIENCE_S)
        assert ready[0].recv(1000).startswith(refused)
        assert lives(url)
        first.close()
        second.close()


@pytest.mark.parametrize(("scope", "status"), [("queue:q:read,claim", 413), ("queue:q:put", 422)])
def test_who_sends_no_values_sends_no_body_that_has_room_for_them(scope: str, status: int) -> None:
    store = MemoryStore()
    headers = JSON | {"authorization": f"Bearer {make(store, scope)}"}
    served = Served(store)
    body = b'{"queue":"q","ids":["%s"]}' % (b"x" * 9 * MIB)
    reply = urllib3.request("POST", f"{served.url}/v1/browse", body=body, headers=headers, retries=False)
    assert reply.status == status
    served.close()


@pytest.mark.anyio
async def test_whose_long_body_kept_others_waiting_rests_and_others_do_not() -> None:
    now, others = 0.0, list[str]()
    budget = Budget(lambda: bool(others), now=lambda: now)
    budget.charge("me", 1.0)
    await budget.rest("me")  # Nobody else asked.
    others.append("other")
    budget.charge("me", 0.5)
    with pytest.raises(WireError) as refused:
        await budget.rest("me")
    assert (refused.value.problem.status, refused.value.headers[0]) == (429, (b"retry-after", b"50"))
    async with budget.turn("other"):
        """Its turn comes all the same."""
    now += 50.0
    async with budget.turn("me"):
        """It has rested."""


@pytest.mark.parametrize(("options", "status"), [(Options(waiting=2), 503), (Options(waiting_each=2), 429)])
def test_more_who_wait_than_allowed_are_refused_and_others_served(options: Options, status: int) -> None:
    served = Served(MemoryStore(), options)

    def wait() -> Any:
        return urllib3.request("POST", f"{served.url}/v1/claim?wait_s=300", body=b'{"queue":"jobs"}', headers=JSON, retries=False)

    waiters = [Doing(wait) for _ in range(2)]
    until(lambda: len(served.plane._lasting) == 2)
    refused = wait()
    assert (refused.status, refused.headers["retry-after"]) == (status, "5")
    assert urllib3.request("POST", f"{served.url}/v1/count", body=b'{"queue":"jobs"}', headers=JSON, retries=False).status == 200
    urllib3.request(
        "POST", f"{served.url}/v1/put", body=b'{"queue":"jobs","items":[{"id":"a","value":1},{"id":"b","value":1}]}', headers=JSON
    )
    assert [waiter.result("a claim").status for waiter in waiters] == [200, 200]
    until(lambda: len(served.plane._lasting) == 0)
    served.close()


def test_whoever_falls_silent_is_hung_up_on_and_not_who_waits_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_serving, "KEEP_ALIVE_S", 0.2)
    with serving(Server(ControlPlane(MemoryStore()), Exposure(port=0))) as url:
        silent = opened(url)
        body = b'{"queue":"jobs"}'
        asked = b"POST /v1/claim?wait_s=0.5 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        for _ in range(2):
            silent.sendall(asked % (len(body), body))
            assert silent.recv(1000).endswith(b'{"messages":[]}')
        assert is_hung_up(silent)
        silent.close()


def test_requests_that_come_in_one_piece_are_answered_in_their_order(url: str) -> None:
    eager = opened(url)
    put = b'{"queue":"jobs","items":[{"id":"a","value":1}]}'
    request = b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
    eager.sendall(request % (b"/v1/put", len(put), put) + request % (b"/v1/count", 16, b'{"queue":"jobs"}') + request % (b"/v1/no", 0, b""))
    answered = b""
    while b"unknown path" not in answered:
        answered += eager.recv(10_000)
    created, ready = answered.index(b'"created":[true]'), answered.index(b'"ready":1')
    assert created < ready < answered.index(b"404 Not Found")
    eager.close()


def test_whoever_asks_for_the_last_answer_is_hung_up_on_after_it(url: str) -> None:
    leaving = opened(url)
    leaving.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert b"connection: close" in b"".join(iter(lambda: leaving.recv(1000), b""))  # To its end.
    leaving.close()


@pytest.mark.parametrize(("asked", "status"), [(b"POST /v1/no", b"404"), (b"GET /v1/put", b"405"), (b"GET /healthz", b"200")])
@pytest.mark.parametrize("length", [b"content-length: 1000000000", b"transfer-encoding: chunked"])
def test_whoever_sends_a_body_that_nobody_reads_is_hung_up_on(url: str, asked: bytes, status: bytes, length: bytes) -> None:
    slow = opened(url)
    slow.sendall(b"%s HTTP/1.1\r\nhost: localhost\r\n%s\r\n\r\n" % (asked, length))
    answered = slow.recv(1000)
    assert answered.startswith(b"HTTP/1.1 " + status)
    assert answered.count(b"connection: close") == 1
    while slow.recv(1000):
        """The rest of the answer."""
    slow.close()


def test_whoever_is_refused_before_a_body_that_came_whole_may_ask_again(url: str) -> None:
    patient = opened(url)
    for _ in range(2):
        patient.sendall(b"POST /v1/no HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}")
        answered = patient.recv(1000)
        while b"unknown path" not in answered:
            answered += patient.recv(1000)
        assert b"connection: close" not in answered
    patient.close()


@pytest.mark.parametrize("behind", [0, 3])
def test_a_wait_ends_when_its_client_hangs_up_also_with_requests_sent_behind_it(behind: int) -> None:
    plane = ControlPlane(MemoryStore())
    with serving(Server(plane, Exposure(port=0))) as url:
        leaving = opened(url)
        asked = b"POST /v1/claim?wait_s=300 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n"
        leaving.sendall((asked + b'{"queue":"q"}') * (1 + behind))
        until(lambda: len(plane._lasting) == 1)
        leaving.close()
        until(lambda: len(plane._lasting) == 0)


class Wire(asyncio.Transport):
    """A transport that remembers what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_answered = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        self.is_answered.set()

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """There is nobody at the other end."""

    def abort(self) -> None:
        """As above."""


@pytest.mark.anyio
async def test_an_answer_goes_out_in_one_piece() -> None:
    plane = ControlPlane(MemoryStore())
    plane.begin()
    config = Config(plane, lifespan="off", log_config=None, proxy_headers=False, http=Connection)
    config.load()
    wire, connection = Wire(), Connection(config=config, server_state=ServerState(), app_state={})
    connection.connection_made(wire)
    connection.data_received(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await asyncio.wait_for(wire.is_answered.wait(), PATIENCE_S)
    connection.connection_lost(None)
    await plane.close()
    (whole,) = wire.written
    assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
    assert whole.endswith(b'\r\n\r\n{"ok":true}')


@pytest.mark.anyio
@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize(("size", "status"), [(100 * 1024, b"400"), (60 * 1024, b"200")])
async def test_a_head_that_is_too_long_is_refused_in_however_few_pieces_it_comes(pieces: int, size: int, status: bytes) -> None:
    plane = ControlPlane(MemoryStore())
    plane.begin()
    config = Config(plane, lifespan="off", log_config=None, proxy_headers=False, http=Connection)
    config.load()
    wire, connection = Wire(), Connection(config=config, server_state=ServerState(), app_state={})
    connection.connection_made(wire)
    head = b"POST /v1/count HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10000\r\nx: %b\r\n\r\n"
    sent = head % (b"x" * size) + b'{"queue":"q"}'.ljust(10_000)
    for begin in range(0, len(sent), -(-len(sent) // pieces)):
        connection.data_received(sent[begin : begin - (-len(sent) // pieces)])
    await asyncio.wait_for(wire.is_answered.wait(), PATIENCE_S)
    connection.connection_lost(None)
    await plane.close()
    assert b"".join(wire.written).startswith(b"HTTP/1.1 " + status)


LONG = "x" * 2**20


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("count", {LONG: 1}),
        ("configure", {"kind": LONG, "name": "n"}),
        ("put", {"queue": "q", "items": [{"id": "a", "value": 1, "if_ready": LONG}]}),
        ("write", {"dict": "d", "changes": [{"key": "k", "do": LONG}]}),
        ("browse", {"queue": "q", "state": LONG}),
        ("together", {"commands": [{"type": LONG}]}),
        ("count", {"queue": LONG}),
    ],
)
def test_an_error_does_not_repeat_all_that_was_sent(path: str, body: dict[str, Any]) -> None:
    served = Served(MemoryStore())
    reply = urllib3.request("POST", f"{served.url}/v1/{path}", body=json.encode(body), headers=JSON, retries=False)
    served.close()
    assert reply.status == 422
    assert len(reply.data) < 10_000
