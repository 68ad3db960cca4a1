"""Hostile requests to a server process: its memory stays flat, and others are served meanwhile."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import urllib3

from tests.server.processes import PATIENCE_S, Process
from tests.server.serving import JSON

MIB = 2**20
ROUNDS = 8
HEAD = b"POST /v1/put HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
SENT = 20 * MIB
"""How much each of them sends if nobody stops it."""


def endless_head() -> Iterator[bytes]:
    yield HEAD
    for _ in range(SENT // 8192):
        yield b"x: " + b"y" * 8187 + b"\r\n"


def endless_body() -> Iterator[bytes]:
    yield HEAD + b"transfer-encoding: chunked\r\n\r\n"
    for _ in range(SENT // MIB):
        yield b"100000\r\n" + b"x" * MIB + b"\r\n"


def long_body() -> Iterator[bytes]:
    yield HEAD + b"content-length: %d\r\n\r\n" % SENT
    yield from (b"x" * MIB for _ in range(SENT // MIB))


def deep_body() -> Iterator[bytes]:
    yield HEAD + b"content-length: %d\r\n\r\n" % MIB
    yield b"[" * MIB


def compressed_body() -> Iterator[bytes]:
    yield HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % MIB
    yield b"\x1f\x8b" + b"\0" * (MIB - 2)


def truncated_body() -> Iterator[bytes]:
    yield HEAD + b"content-length: %d\r\n\r\n" % MIB
    yield b"x" * (MIB - 1)


HOSTILE = (endless_head, endless_body, long_body, deep_body, compressed_body, truncated_body)


def send(port: int, parts: Iterator[bytes]) -> socket.socket:
    """Send until it is stopped, and stay there."""
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    try:
        for part in parts:
            connection.sendall(part)
    except ConnectionError:
        """It was hung up on."""
    return connection


def memory_bytes(process: Process) -> int:
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(process.pid)], text=True)) * 1024  # noqa: S607 - wherever it is


def attack(process: Process) -> int:
    """Send all of it at once; answer the memory of the server meanwhile."""
    connections = [send(process.port, parts()) for parts in HOSTILE]
    assert urllib3.request("POST", f"{process.url}/v1/count", body=b'{"queue":"jobs"}', headers=JSON, retries=False).status == 200
    used = memory_bytes(process)
    for connection in connections:
        connection.close()
    return used


def growth(file: Path, *options: str) -> int:
    with Process(file, *options) as process:
        before = memory_bytes(process)
        return max(attack(process) for _ in range(ROUNDS)) - before


def test_hostile_requests_leave_the_memory_flat_and_others_served(tmp_path: Path) -> None:
    assert growth(tmp_path / "served.db", "--max-body-mib=1") < SENT, "500 MiB were sent"


def test_control_without_a_limit_the_memory_would_grow(tmp_path: Path) -> None:
    assert growth(tmp_path / "served.db", "--max-body-mib=1000") > SENT
