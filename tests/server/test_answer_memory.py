"""Answers in memory: so many bytes, in all and of each token, and clients that do not read are cut off."""

import asyncio
import socket

import pytest
import urllib3
from msgspec import json

from holdfast.commands import Change, Item, Put, Write
from holdfast.server import asgi
from holdfast.server.app import ControlPlane, Options
from holdfast.server.load import answer_memory as server_memory
from holdfast.server.load.answer_memory import Memory, Share
from holdfast.server.process.network_policy import Exposure
from holdfast.server.process.uvicorn_server import Server, serving
from holdfast.stores.http.problems import WireError
from holdfast.stores.memory import MemoryStore
from holdfast.testing.conformance.answers import ALL, LARGE, MOST
from holdfast.testing.conformance.threads import PATIENCE_S
from tests.server.test_limits import opened
from tests.server.test_routes import until
from tests.server.test_tokens import make

POST = b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer %s\r\n"
LENGTH = b"content-length: %d\r\n\r\n"


def refused(error: pytest.ExceptionInfo[WireError]) -> tuple[int, bytes]:
    return error.value.problem.status, dict(error.value.headers)[b"retry-after"]


@pytest.mark.anyio
async def test_who_waits_for_room_gets_it_in_turn_and_keeps_no_other_token_from_it() -> None:
    memory = Memory(10, 4)
    await memory.wait("a", 4)
    order = list[str]()

    async def wait(whose: str, size: int, name: str) -> None:
        await memory.wait(whose, size)
        order.append(name)

    waiting = [
        asyncio.create_task(wait("a", 4, "first")),
        asyncio.create_task(wait("a", 1, "second")),
        asyncio.create_task(wait("b", 4, "other")),
    ]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == ["other"]
    memory.hold("a", -4)
    await waiting[0]
    assert order == ["other", "first"]
    waiting[1].cancel()
    await asyncio.wait([waiting[1]])
    memory.hold("a", -4)
    memory.hold("b", -4)
    assert memory.total == 0


@pytest.mark.anyio
async def test_who_waits_for_room_too_long_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_memory, "WAIT_S", 0.01)
    memory = Memory(10, 4)
    share = Share(memory, "a")
    await share.wait_for(4)
    with pytest.raises(WireError) as own:
        await Share(memory, "a").wait_for(1)
    await Share(memory, "b").wait_for(4)
    with pytest.raises(WireError) as total:
        await Share(memory, "c").wait_for(4)
    assert (refused(own), refused(total)) == ((429, b"1"), (503, b"1"))
    share.leave()
    assert (share.take(4), memory.total) == (True, 8)


class Served:
    """A server of its own, so that clients may be cut off."""

    def __init__(self, store: MemoryStore, options: Options) -> None:
        self.store = store
        self.token = make(store).encode()
        self.plane = ControlPlane(store, options)
        self.url = ""

    def begin(self, path: bytes, token: bytes, rest: bytes) -> socket.socket:
        """Send a request, or a part of it."""
        connection = opened(self.url)
        connection.sendall(POST % (path, token) + rest)
        return connection

    def ask(self, path: str, body: object, token: bytes) -> tuple[int, bytes]:
        headers = {"content-type": "application/json", "authorization": f"Bearer {token.decode()}"}
        reply = urllib3.request("POST", self.url + path, body=json.encode(body), headers=headers, retries=False, timeout=PATIENCE_S)
        return reply.status, reply.data


def fill(store: MemoryStore) -> None:
    store.execute(Put("q", [Item(name, LARGE) for name in ALL[:MOST]]))
    store.execute(Write("d", [Change(name, value=LARGE) for name in ALL[:MOST]]))


def test_an_answer_that_nobody_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "SEND_S", 0.1)
    served = Served(MemoryStore(), Options())
    fill(served.store)
    page = json.encode({"queue": "q"})
    with serving(Server(served.plane, Exposure(port=0))) as served.url:
        silent = served.begin(b"/v1/browse", served.token, LENGTH % len(page) + page)
        until(lambda: served.plane._memory.total > 10 * 2**20)
        until(lambda: served.plane._memory.total == 0)
        monkeypatch.setattr(asgi, "SEND_S", PATIENCE_S)  # Who reads may be slow.
        assert len(read_until_cut(silent)) < 15 * 2**20
        assert len(served.ask("/v1/browse", {"queue": "q"}, served.token)[1]) > 15 * 2**20
        silent.close()


def test_a_watcher_who_does_not_read_is_cut_off_and_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "SEND_S", 0.1)
    served = Served(MemoryStore(), Options())
    fill(served.store)
    with serving(Server(served.plane, Exposure(port=0))) as served.url:
        watcher = watch(served, b"")
        until(lambda: served.plane._memory.total > 2**20)
        assert served.plane._memory.total < 6 * 2**20, "it holds a few events, not a page of all"
        until(lambda: (len(served.plane._lasting), served.plane._memory.total) == (0, 0))
        monkeypatch.setattr(asgi, "SEND_S", PATIENCE_S)
        seen = whole_ids(read_until_cut(watcher))
        assert len(seen) < MOST
        watcher.close()
        after = b"last-event-id: %s\r\n" % seen[-1] if seen else b""
        watcher, text = watch(served, after), b""
        while len(seen) + len(whole_ids(text)) < MOST:
            text += watcher.recv(2**20)
        watcher.close()
        seen += whole_ids(text)
    numbers = [int(number) for number in seen]
    assert (len(numbers), numbers) == (MOST, sorted(set(numbers)))


def watch(served: Served, headers: bytes) -> socket.socket:
    connection = opened(served.url)
    get = b"GET /v1/watch?topic=dict:d HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer %s\r\n%s\r\n"
    connection.sendall(get % (served.token, headers))
    return connection


def whole_ids(stream: bytes) -> list[bytes]:
    """The ids of the events in a stream that came to their ends."""
    return [frame.split(b"id: ")[1].split(b"\n")[0] for frame in stream.split(b"\n\n")[:-1] if b"id: " in frame]


def read_until_cut(connection: socket.socket) -> bytes:
    parts = list[bytes]()
    try:
        while part := connection.recv(2**20):
            parts.append(part)
    except ConnectionResetError:
        """It was cut off."""
    return b"".join(parts)
