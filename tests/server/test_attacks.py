"""What was once enough to stop a server or to fill its memory, tried on a server process: it refuses, and serves others meanwhile."""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import urllib3
from msgspec import json

from holdfast.connect import connect
from tests.postgres import own_postgres_url
from tests.server.processes import PATIENCE_S, Process
from tests.server.serving import JSON
from tests.server.test_process_memory import memory_bytes
from tests.server.test_tokens import make

MIB = 2**20


class Attacked:
    """A server process with tokens, and the memory that it began with."""

    def __init__(self, process: Process, read: str, put: str, hold: str) -> None:
        self.process = process
        self.read = read
        self.put = put
        self.hold = hold
        self._begun_bytes = memory_bytes(process)

    def ask(self, path: str, body: bytes, token: str) -> int:
        headers = JSON | {"authorization": f"Bearer {token}"}
        return urllib3.request("POST", self.process.url + path, body=body, headers=headers, retries=False, timeout=PATIENCE_S).status

    def send(self, line: str, body: bytes, token: str | None, length: int | None = None) -> socket.socket:
        """Send the request, and wait for nothing."""
        signed = "" if token is None else f"authorization: Bearer {token}\r\n"
        head = (
            f"{line} HTTP/1.1\r\nhost: localhost\r\n{signed}content-type: application/json\r\ncontent-length: {length or len(body)}\r\n\r\n"
        )
        connection = socket.create_connection(("127.0.0.1", self.process.port), PATIENCE_S)
        connection.sendall(head.encode() + body)
        return connection

    def is_well(self) -> bool:
        """Whether others are served, and it has not grown much."""
        is_alive = urllib3.request("GET", f"{self.process.url}/healthz", retries=False, timeout=PATIENCE_S).status == 200
        return is_alive and memory_bytes(self.process) - self._begun_bytes < 150 * MIB


def attacked(url: str) -> Iterator[Attacked]:
    store = connect(url)
    read, put, hold = make(store, "queue:q:read,claim"), make(store, "queue:q:put"), make(store, "queue:q:put")
    with Process(url) as process:
        yield Attacked(process, read, put, hold)
    store.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    yield from attacked(f"sqlite:///{tmp_path_factory.mktemp('served')}/store.db")


@pytest.fixture
def on_postgres() -> Iterator[Attacked]:
    yield from attacked(own_postgres_url())


def test_waits_on_very_many_long_topics_neither_stop_a_server_nor_its_end(on_postgres: Attacked) -> None:
    bodies = [
        json.encode({"topics": [[f"key:q:{number}-{topic}-{'x' * 600}"] for topic in range(10_000)], "timeout_s": 60})
        for number in range(8)
    ]
    waiting = [on_postgres.send("POST /v1/wait", body, on_postgres.read) for body in bodies]
    assert on_postgres.is_well()
    assert on_postgres.process.stop() == 0
    for each in waiting:
        each.close()


def test_a_topic_that_is_all_colons_is_refused(served: Attacked) -> None:
    assert served.ask("/v1/changes", b'{"topic":"key:q%s"}' % (b":" * 150_000), served.read) == 422
    assert served.is_well()


def test_a_step_of_many_counts_is_refused(served: Attacked) -> None:
    assert served.ask("/v1/together", json.encode({"commands": [{"type": "Count", "queue": "q"}] * 500}), served.read) == 422
    assert served.is_well()


def test_a_body_that_is_all_brackets_keeps_nobody_waiting(served: Attacked) -> None:
    deep = b",".join([b"[" * 97 + b"]" * 97] * (23 * MIB // 195))
    sent = served.send("POST /v1/put", b'{"queue":"q","items":[%s]}' % deep, served.put)
    assert served.is_well()
    assert sent.recv(12) == b"HTTP/1.1 413"
    sent.close()


def first_answers(connections: list[socket.socket], count: int) -> list[bytes]:
    """The first words of the first answers that come, from whichever connection."""
    answers: list[bytes] = []
    while len(answers) < count:
        for connection in select.select(connections, [], [])[0]:
            answers.append(connection.recv(12))
            connections = [other for other in connections if other is not connection]
    return answers


def test_bodies_that_are_held_open_take_the_memory_of_a_few(served: Attacked) -> None:
    with ExitStack() as opened:
        # Little more than the head: a server that has refused it may close while a longer body is still being sent. A token
        # that has done nothing before: one that has kept others waiting is refused for a while, all 30 times.
        held = [opened.enter_context(served.send("POST /v1/claim?x", b" ", served.hold, 15 * MIB)) for _ in range(30)]
        assert first_answers(held, 27) == [b"HTTP/1.1 429"] * 27
        assert served.is_well()


@pytest.mark.parametrize(("line", "status"), [("POST /v1/put", b"401"), ("GET /v1/put", b"401")])
def test_a_body_that_drips_in_after_a_refusal_is_not_waited_for(served: Attacked, line: str, status: bytes) -> None:
    drip = served.send(line, b"{", None, 1_000_000_000)
    answered = b""
    while piece := drip.recv(1_000):
        answered += piece
    assert answered.startswith(b"HTTP/1.1 " + status)
    drip.close()
