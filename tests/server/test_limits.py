"""Limits: whoever is slow, endless or too many is refused, and the others are served."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from holdfast.server import bodies
from holdfast.server.app import ControlPlane, Options
from holdfast.server.asgi import Scope
from holdfast.server.connections import Connection, Gathering
from holdfast.server.exposure import Exposure
from holdfast.server.layers.limits import InFlight
from holdfast.server.serving import Server, serving
from holdfast.stores.http.problems import WireError
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance.threads import PATIENCE_S, Doing
from tests.server.serving import Served
from tests.server.test_routes import until


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
    monkeypatch.setattr(bodies, "BODY_S", 0.01)

    async def never() -> Any:
        await asyncio.Event().wait()

    with pytest.raises(WireError) as refused:
        await bodies.read_body({"headers": []}, never)
    assert refused.value.problem.status == 408
    assert (b"connection", b"close") in refused.value.headers


@pytest.mark.anyio
async def test_more_requests_at_once_than_allowed_are_told_to_come_again() -> None:
    served = asyncio.Event()

    async def work(*_: object) -> None:
        await served.wait()

    limited = InFlight(work, most=2)
    scope: Scope = {"path": "/v1/put", "query_string": b""}
    under_way = [asyncio.create_task(limited(scope, work, work)) for _ in range(2)]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    with pytest.raises(WireError) as refused:
        await limited(scope, work, work)  # type: ignore[arg-type]
    assert (refused.value.problem.status, refused.value.headers[0]) == (503, (b"retry-after", b"1"))
    served.set()
    await asyncio.gather(*under_way)
    await limited(scope, work, work)  # type: ignore[arg-type]
    assert limited.count == 0


@pytest.mark.parametrize(("options", "status"), [(Options(waiting=2), 503), (Options(waiting_each=2), 429)])
def test_more_who_wait_than_allowed_are_refused_and_others_served(options: Options, status: int) -> None:
    served = Served(MemoryStore(), options)

    def wait() -> Any:
        return urllib3.request("POST", f"{served.url}/v1/claim?wait_s=300", body=b'{"queue":"jobs"}', retries=False)

    waiters = [Doing(wait) for _ in range(2)]
    until(lambda: len(served.plane._lasting) == 2)
    refused = wait()
    assert (refused.status, refused.headers["retry-after"]) == (status, "5")
    assert urllib3.request("POST", f"{served.url}/v1/count", body=b'{"queue":"jobs"}', retries=False).status == 200
    urllib3.request("POST", f"{served.url}/v1/put", body=b'{"queue":"jobs","items":[{"id":"a","value":1},{"id":"b","value":1}]}')
    assert [waiter.result("a claim").status for waiter in waiters] == [200, 200]
    until(lambda: len(served.plane._lasting) == 0)
    served.close()


class Wire:
    """A transport that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.is_lost = False

    def writelines(self, parts: list[bytes]) -> None:
        self.told.append(parts)

    def close(self) -> None:
        self.told.append("close")

    def is_closing(self) -> bool:
        return self.is_lost


@pytest.mark.anyio
async def test_what_is_written_in_one_go_is_sent_at_once_and_before_the_end() -> None:
    wire = Wire()
    gathering = Gathering(wire, asyncio.get_running_loop())  # type: ignore[arg-type]
    gathering.write(b"head")
    gathering.write(b"body")
    assert wire.told == []
    await asyncio.sleep(0)
    gathering.write(b"last")
    gathering.close()
    await asyncio.sleep(0)
    assert wire.told == [[b"head", b"body"], [b"last"], "close"]
    gathering.write(b"to nobody")
    wire.is_lost = True
    await asyncio.sleep(0)
    assert wire.told[3:] == []
