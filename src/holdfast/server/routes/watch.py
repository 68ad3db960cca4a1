"""`GET /v1/watch`: the events of a topic as Server-Sent Events, with the index as id."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qs

from msgspec import Struct, json

from holdfast.commands import Changes, Page
from holdfast.commands.events import OLDEST
from holdfast.commands.sizes import brought
from holdfast.commands.topics import watch_topic
from holdfast.records import Event
from holdfast.server.asgi import PIECE_BYTES, STATUS, Receive, Scope, Send, header, send_in_time, send_pieces
from holdfast.server.auth.callers import caller_of, who_asks
from holdfast.server.auth.guarded_store import Reach
from holdfast.server.load.answer_memory import Memory, Share
from holdfast.server.long_requests import Lasting
from holdfast.server.namespaces.admission import Tenants
from holdfast.stores import AsyncStore
from holdfast.stores.http.problems import WireError
from holdfast.stores.waiting.waiters import Mark

HEARTBEAT_S: Final = 15.0
QUIET_BEATS: Final = 4
"""After so many heartbeats without a hint the store is asked all the same, should one have been lost."""

PAGE: Final = 500
FIRST_PAGE: Final = 4
"""How many events are read at first, and after a page of large ones."""

SHORT_BYTES: Final = 64 * 1024
OK: Final = 200
_HEADERS = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
_encode: Callable[[object], bytes] = json.Encoder().encode


class WatchRoute:
    """Streams what happens on a topic; a comment now and then shows that the stream lives."""

    def __init__(self, store: AsyncStore, lasting: Lasting, tenants: Tenants, memory: Memory, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._store = store
        self._lasting = lasting
        self._tenants = tenants
        self._memory = memory
        self._heartbeat_s = heartbeat_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = asked_for(scope)
        caller = caller_of(scope)
        share = Share(self._memory, who_asks(caller))
        store = Reach(self._store, caller, self._tenants, share)
        try:
            with store.mark(watch_topic(first.topic)) as mark:
                page = await store.execute(first)  # What is wrong with it is still an error, not a stream.
                parts = self._parts(_Watch(store, mark, first.topic, share), page)
                del page  # Or it would be kept for as long as the watch lasts.
                await self._lasting.run(scope, receive, self._stream(scope, send, parts), self._tenants)
        finally:
            share.leave()
        await send_in_time(scope, send, {"type": "http.response.body", "body": b""})

    async def _stream(self, scope: Scope, send: Send, parts: AsyncIterator[bytes]) -> None:
        scope[STATUS] = OK
        await send_in_time(scope, send, {"type": "http.response.start", "status": OK, "headers": _HEADERS})
        with suppress(WireError):  # The caller's token was revoked meanwhile, or there was no room for long: the stream ends.
            async for part in parts:
                await send_pieces(scope, send, part)  # Whoever reads no longer is hung up on, and may go on after its last event.

    async def _parts(self, watch: "_Watch", page: Page) -> AsyncIterator[bytes]:
        """What to send: events, or a heartbeat when there were none for a while."""
        yield b": watching\n\n"
        limit = FIRST_PAGE
        while True:
            if page.events:
                watch.mark.used()
            for frames in in_pieces(page.events, watch.store.wall_offset_us()):
                yield frames
            # After large events few are read, so that a client that does not read keeps little in memory.
            limit = min(PAGE, 4 * limit) if brought(page) < SHORT_BYTES else FIRST_PAGE
            upto, latest = page.upto, page.latest
            del page
            watch.share.leave()
            if upto >= latest:
                for _ in range(QUIET_BEATS):
                    if await self._is_hinted(watch.store, watch.mark):
                        break
                    yield b": still here\n\n"
            page = await watch.store.execute(Changes(watch.topic, upto, limit))

    async def _is_hinted(self, store: AsyncStore, mark: Mark) -> bool:
        """Wait for a hint until the next heartbeat; whether one came."""
        waited_from = time.monotonic()
        await store.wait(mark, self._heartbeat_s)
        return time.monotonic() - waited_from < self._heartbeat_s


class _Watch(Struct):
    store: AsyncStore
    mark: Mark
    topic: str
    share: Share
    """What the events that are being sent take of the server's memory."""


def in_pieces(events: Sequence[Event], wall_offset_us: int) -> Iterator[bytes]:
    """The frames of the events, a few small ones at a time."""
    frames, size = list[bytes](), 0
    for event in events:
        frames.append(framed(event, wall_offset_us))
        size += len(frames[-1])
        if size >= PIECE_BYTES:
            yield b"".join(frames)
            frames, size = [], 0
    if frames:
        yield b"".join(frames)


def asked_for(scope: Scope) -> Changes:
    """What is to be watched, from the query and the Last-Event-ID that a client sends when it comes again."""
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if not {"topic"} <= query.keys() <= {"topic", "after"}:
        raise ValueError("a watch takes topic=queue:NAME, dict:NAME or lease::NAME, and after=INDEX to continue from an event")
    last = header(scope, b"last-event-id")
    after = last.decode("latin-1") if last is not None else query.get("after", [str(OLDEST)])[-1]
    if not after.removeprefix("-").isdecimal() or not after.isascii() or len(after) > len(str(2**63)):
        raise ValueError("the index in after is not a whole number")
    return Changes(query["topic"][-1], max(int(after), OLDEST), FIRST_PAGE)


def framed(event: Event, wall_offset_us: int) -> bytes:
    """One event as a frame; `at` is a moment of the wall clock, in microseconds."""
    data = _encode({"index": event.index, "event": event.event, "data": event.data, "at": event.at + wall_offset_us})
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.index, event.event.encode(), data)
