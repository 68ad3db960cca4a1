"""Connections: closes those whose request heads are too slow or incomplete, and silent ones."""

import asyncio
from functools import partial
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from holdfast.server.asgi import BODY, HANG_UP, REPLY, Headers
from holdfast.server.auth.browsers import ANSWER_HEADERS, may_be_of_a_browser

HEAD_S: Final = 30.0
HEAD_BYTES: Final = 64 * 1024
OK: Final = 200


class Connection(HttpToolsProtocol):
    """uvicorn's, which has no limit for the head of a request, neither on its time nor on its size, and takes an answer in two steps."""

    head_s = HEAD_S
    head_bytes = HEAD_BYTES

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_in_head = True
        self._head_bytes = 0
        self._piece_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._began_now = False  # The head of the request at hand came with the piece at hand.
        self._silent_since: float | None = None
        self._silence_timer: asyncio.TimerHandle | None = None
        self._under_way: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.head_s, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._silence_timer):
            if timer is not None:
                timer.cancel()
        if self._under_way is not None and not self._under_way.response_complete:
            # uvicorn tells only the request that came last, and others may have been sent behind the one under way.
            self._under_way.disconnected = True
            self._under_way.message_event.set()
        super().connection_lost(exc)
        # Not to be kept by what it keeps: only the collector would free it, and what its client had sent.
        for cycle in (self._under_way, self.cycle):
            if cycle is not None:
                self._let_go(cycle)
                cycle.body.clear()
        self._under_way = None
        # Nothing is read from here on, so uvicorn's own attributes may have other types.
        vars(self).update(cycle=None, scope={})

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._under_way = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        self._silent_since, self._began_now, self._piece_bytes = None, False, len(data)
        super().data_received(data)
        # Nearly always the whole head came at once, and no timer was needed.
        if self._is_in_head:
            self._wait_for_the_rest(len(data))
        elif self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def on_message_begin(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        # What came may be mostly body: then the head is measured.
        if self._head_bytes + self._piece_bytes > self.head_bytes and self._size_of_head() > self.head_bytes:
            raise ValueError("the head is too long")  # uvicorn answers 400, and hangs up.
        self._is_in_head, self._began_now = False, True
        super().on_headers_complete()
        self.scope[REPLY] = partial(reply, self.cycle)  # type: ignore[typeddict-unknown-key]  # uvicorn knows only its own
        self.scope[HANG_UP] = self._hang_up  # type: ignore[typeddict-unknown-key]  # as above

    def on_message_complete(self) -> None:
        if self._began_now:
            self.scope[BODY] = bytes(self.cycle.body)  # type: ignore[typeddict-unknown-key]  # as above
        super().on_message_complete()

    def on_response_complete(self) -> None:
        # As in uvicorn, but that it sets a timer after every answer: here one that is set serves until it rings.
        self.server_state.total_requests += 1
        self._let_go(self._under_way)
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._silent_since = self.loop.time()
        if self._silence_timer is None:
            self._silence_timer = self.loop.call_later(self.timeout_keep_alive, self._end_if_silent)

    def _let_go(self, cycle: RequestResponseCycle | None) -> None:
        """A request that is answered is not to keep itself in memory, by what its scope offers."""
        if cycle is not None:
            cycle.scope.pop(REPLY, None)  # type: ignore[typeddict-item]  # uvicorn knows only its own

    def _end_if_silent(self) -> None:
        self._silence_timer = None
        if self._silent_since is None:
            return  # The next answer sets it again.
        left_s = self._silent_since + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._silence_timer = self.loop.call_later(left_s, self._end_if_silent)
        elif self.transport.get_write_buffer_size():
            self._hang_up()  # Closing would wait for a client that does not read.
        elif not self.transport.is_closing():
            self.transport.close()

    def _size_of_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _wait_for_the_rest(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.head_bytes:
            self._hang_up()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self._hang_up)

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()


def reply(cycle: RequestResponseCycle, status: int, body: bytes, headers: Headers) -> bool:
    """Send a whole answer as one piece: uvicorn does that in two steps, and looks at each header for what ours never have.

    What takes more than that is left to it: a problem, the last answer of a connection, a client who does not read.
    """
    if status != OK or cycle.response_started or cycle.disconnected or not cycle.keep_alive or cycle.flow.write_paused:
        return False
    cycle.response_started = cycle.response_complete = True
    for_all = cycle.default_headers
    if not may_be_of_a_browser(cycle.scope):
        for_all = for_all[: -len(ANSWER_HEADERS)]  # They are the last, and each costs a program what it takes to read them.
    lines = [b"%s: %s\r\n" % line for line in (*for_all, *headers)]
    cycle.transport.write(b"".join((STATUS_LINE[status], *lines, b"\r\n", body)))
    cycle.message_event.set()
    cycle.on_response()
    return True
