"""One connection: whoever sends the head of a request too slowly, or never ends it, is hung up on."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.server.asgi import WHOLE

HEAD_S: Final = 30.0
HEAD_BYTES: Final = 64 * 1024


class Gathering:
    """A transport that sends at once what is written in one go: the head of an answer and its body are one packet, and one system call."""

    __slots__ = ("_loop", "_parts", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        self._send()
        self._transport.close()

    def _send(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():  # The client may have hung up since.
            self._transport.writelines(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """uvicorn's, which has no limit for the head of a request: neither on its time nor on its size."""

    head_s = HEAD_S
    head_bytes = HEAD_BYTES

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_in_head = True
        self._head_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(Gathering(transport, self.loop))  # type: ignore[arg-type]
        self._timer = self.loop.call_later(self.head_s, self._hang_up)

    def on_message_begin(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.scope[WHOLE] = True  # type: ignore[typeddict-unknown-key]  # uvicorn knows only its own
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Nearly always the whole head came at once, and no timer was needed.
        if self._is_in_head:
            self._wait_for_the_rest(len(data))
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _wait_for_the_rest(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.head_bytes:
            self._hang_up()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.head_s, self._hang_up)

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
