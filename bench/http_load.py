"""A load generator of one process: connections that ask, read the answer, and ask again."""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import cast

from msgspec import Struct

Turn = Callable[[bytes], tuple[str, bytes]]
"""From the last answer's body to the next path and body."""


class Load(Struct, frozen=True):
    """What came of it: answers a second, and how long the slowest hundredth took at least."""

    rate: float
    p99_ms: float
    failed: int


class Asking(asyncio.Protocol):
    """One connection that keeps one request under way."""

    def __init__(self, turn: Turn, latencies: list[float]) -> None:
        self._turn = turn
        self._latencies = latencies
        self._received = b""
        self._since = 0.0
        self.failed = 0
        self.is_over = False
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class.
        self._ask(b"")

    def _ask(self, answer: bytes) -> None:
        path, body = self._turn(answer)
        self._since = perf_counter()
        self._transport.write(
            b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
            % (path.encode(), len(body), body)
        )

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, gap, body = self._received.partition(b"\r\n\r\n")
        if not gap:
            return
        at = head.lower().index(b"content-length:") + 15
        if len(body) < int(head[at : (head + b"\r\n").index(b"\r\n", at)]):
            return
        self._received = b""
        self._latencies.append(perf_counter() - self._since)
        self.failed += not head.startswith(b"HTTP/1.1 200")
        if self.is_over:
            self._transport.close()
        else:
            self._ask(body)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.failed += not self.is_over
        if not self.closed.done():
            self.closed.set_result(None)


async def run_load(port: int, turns: list[Turn], seconds: float) -> Load:
    """Let each turn ask on a connection of its own, for so long."""
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    askers = [(await loop.create_connection(lambda turn=turn: Asking(turn, latencies), "127.0.0.1", port))[1] for turn in turns]  # type: ignore[misc]
    start = perf_counter()
    await asyncio.sleep(seconds)
    elapsed = perf_counter() - start
    count = len(latencies)
    for asker in askers:
        asker.is_over = True
    await asyncio.gather(*(asker.closed for asker in askers))
    slow = sorted(latencies)[int(len(latencies) * 0.99)]
    return Load(count / elapsed, slow * 1_000, sum(asker.failed for asker in askers))
