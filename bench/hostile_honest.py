"""The ten honest clients of bench/hostile.py, each with a token of its own, at a steady pace.

How long something took is counted from the moment at which it was due, not from when it was sent: a server that stands still for a second
delays everything that was due in that second.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter

from msgspec import json

from holdfast.ids import new_id

Times = defaultdict[str, list[float]]
"""Seconds, by the kind of operation."""

PATIENCE_S = 60.0
FILLED = 101
WORK, KEYED, LARGE, WAITED = "work", "settings", "large", "waited"
VALUE = {"report": 7, "for": "somebody@example.com"}


class Failed(Exception):  # noqa: N818 - what happened, not a fault of this program
    """An honest request was not answered as it should be."""


class Asker:
    """One connection, which keeps one request under way."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, body: object) -> bytes:
        """The answer's body."""
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await self._opened()
            writer.write(self.head(f"POST {path}", json.encode(body)))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            answer = await reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise Failed(f"{path}: {head[9:12].decode()} {answer.decode()[:200]}")
        return answer

    async def stream(self, path: str) -> asyncio.StreamReader:
        """The events of a watch, from now on."""
        reader, writer = await self._opened()
        writer.write(self.head(f"GET {path}"))
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise Failed(f"{path}: {head[:300]!r}")
        return reader

    def head(self, line: str, body: bytes = b"") -> bytes:
        said = f"{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {self._token}\r\ncontent-type: application/json\r\n"
        return said.encode() + b"content-length: %d\r\n\r\n" % len(body) + body

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        return self._streams

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Honest:
    """Ten clients for the length of one measurement."""

    def __init__(self, port: int, tokens: Sequence[str]) -> None:
        self.times: Times = defaultdict(list)
        self.errors: list[str] = []
        self._askers = [Asker(port, token) for token in tokens]
        self._second = [Asker(port, tokens[7]), Asker(port, tokens[8])]
        self._ends_at = 0.0

    async def run(self, seconds: float) -> None:
        """Let all of them work for so long."""
        self._ends_at = perf_counter() + seconds
        put, put_too, work, work_too, read, write, lock, watch, wait, large = self._askers
        await asyncio.gather(
            *(self._pace(0.04, each, self._put) for each in (put, put_too)),
            *(self._pace(0.04, each, self._work) for each in (work, work_too)),
            self._pace(0.04, read, self._read),
            self._pace(0.04, write, self._write),
            self._pace(0.04, lock, self._lock),
            self._pace(0.1, watch, self._watch()),
            self._pace(0.1, wait, self._wait),
            self._pace(0.2, large, self._put_many),
        )
        for asker in (*self._askers, *self._second):
            asker.close()

    async def _pace(self, every_s: float, asker: Asker, act: Callable[[Asker, float], Awaitable[None]]) -> None:
        due = perf_counter()
        while due < self._ends_at:
            await asyncio.sleep(max(0.0, due - perf_counter()))
            try:
                await act(asker, due)
            except (Failed, OSError, TimeoutError, EOFError) as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                asker.close()
            due += every_s

    async def _timed(self, kind: str, since: float, doing: Awaitable[bytes]) -> bytes:
        answer = await doing
        self.times[kind].append(perf_counter() - since)
        return answer

    async def _put(self, asker: Asker, due: float) -> None:
        await self._timed("put", due, asker.ask("/v1/put", {"queue": WORK, "items": [item()], "id": new_id()}))

    async def _put_many(self, asker: Asker, due: float) -> None:
        body = {"queue": LARGE, "items": [item() for _ in range(FILLED)], "id": new_id()}
        await self._timed("put of 101", due, asker.ask("/v1/put", body))

    async def _work(self, asker: Asker, due: float) -> None:
        claim = {"queue": WORK, "holder": "honest", "lease_s": 300, "id": new_id()}
        claimed = await self._timed("claim", due, asker.ask("/v1/claim", claim))
        receipts = [[WORK, message["id"], message["token"]] for message in json.decode(claimed)["messages"]]
        if receipts:
            await self._timed("ack", perf_counter(), asker.ask("/v1/settle", {"receipts": receipts, "id": new_id()}))

    async def _read(self, asker: Asker, due: float) -> None:
        await self._timed("dict read", due, asker.ask("/v1/read", {"dict": KEYED, "keys": ['"a"', '"b"']}))

    async def _write(self, asker: Asker, due: float) -> None:
        body = {"dict": KEYED, "changes": [{"key": '"a"', "value": VALUE}], "id": new_id()}
        await self._timed("dict write", due, asker.ask("/v1/write", body))

    async def _lock(self, asker: Asker, due: float) -> None:
        lease_id = new_id()
        body = {"dict": None, "key": '["lock","honest"]', "holder": "honest", "lease_id": lease_id, "lease_s": 300, "id": new_id()}
        await self._timed("lock", due, asker.ask("/v1/acquire", body))
        await self._timed("unlock", perf_counter(), asker.ask("/v1/release", {"names": [[None, '["lock","honest"]', lease_id]]}))

    def _watch(self) -> Callable[[Asker, float], Awaitable[None]]:
        """Write, and see it in a watch."""
        writer, events = self._second[0], list[asyncio.StreamReader]()

        async def act(asker: Asker, due: float) -> None:
            if not events:
                latest = json.decode(await writer.ask("/v1/changes", {"topic": "dict:watched", "after": -1, "limit": 1}))["latest"]
                events.append(await asker.stream(f"/v1/watch?topic=dict:watched&after={latest}"))
            written = new_id()
            await writer.ask("/v1/write", {"dict": "watched", "changes": [{"key": '"a"', "value": written}], "id": new_id()})
            try:
                async with asyncio.timeout(PATIENCE_S):
                    while written.encode() not in await events[0].readuntil(b"\n"):
                        """Something else."""
            except (OSError, TimeoutError, EOFError):
                events.clear()
                raise
            self.times["watch"].append(perf_counter() - due)

        return act

    async def _wait(self, asker: Asker, due: float) -> None:
        """Put what a claim waits for."""
        waiting = asyncio.create_task(asker.ask("/v1/claim?wait_s=60", {"queue": WAITED, "take": True}))
        await self._second[1].ask("/v1/put", {"queue": WAITED, "items": [item()], "id": new_id()})
        await self._timed("waiting claim", due, waiting)


def item() -> dict[str, object]:
    return {"id": new_id(), "value": VALUE}
