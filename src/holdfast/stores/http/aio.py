"""A store behind a server, for tasks: connections of each event loop's own, and the listener of the store for threads."""

import asyncio
import io
from typing import TYPE_CHECKING, TypeVar

import aiohttp

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.stores import Guarantees
from holdfast.stores.http.connections import ANNOUNCE_S, CONNECT_S, KEPT, READ_S
from holdfast.stores.http.protocol import PATHS, encode_command
from holdfast.stores.http.replies import Reply
from holdfast.stores.per_loop import PerLoop
from holdfast.stores.retrying import Lost, Tries, named, retry_async
from holdfast.stores.undo_cancelled import take_back_if_cancelled
from holdfast.stores.waiting.waiters import Mark, Waiters
from holdfast.tracing import trace_fields

if TYPE_CHECKING:
    from holdfast.stores.http.store import HttpStore

R = TypeVar("R")

LARGE_BYTES = 2**20


class AsyncHttpStore:
    """The same store, for tasks."""

    def __init__(self, store: "HttpStore") -> None:
        self.store = store
        self.url: str = store.url
        self.limits: Limits = store.limits
        self.waiters: Waiters = store.waiters
        self.sessions: PerLoop[aiohttp.ClientSession] = PerLoop(self._open, aiohttp.ClientSession.close, aiohttp.ClientSession.detach)

    @property
    def guarantees(self) -> Guarantees:
        """Those of the store behind the server; asked for once, which blocks."""
        return self.store.guarantees

    async def execute(self, command: Command[R]) -> R:
        self.store.refuse_if_closed()
        command.measure(self.limits)
        command = named(command)
        url, body = self.store.address.base + PATHS[type(command)], encode_command(command)

        async def attempt() -> R:
            self.store.refuse_if_closed()
            return self.store.answer(command, await self._send(url, body))

        try:
            return await retry_async(attempt, Tries(self.store.patience))
        except BaseException as error:
            take_back_if_cancelled(self.store, error, command)
            raise

    async def _send(self, url: str, body: bytes) -> Reply:
        try:
            # aiohttp wants a large body as a file: it sends it bit by bit then.
            data = body if len(body) < LARGE_BYTES else io.BytesIO(body)
            async with self.sessions.get().post(url, data=data, headers=trace_fields(), allow_redirects=False) as reply:
                return Reply(reply.status, reply.headers, await reply.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Lost(f"{self.url} cannot be reached: {error}", maybe_applied=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Lost(self.store.address.cut_off(error), maybe_applied=True) from error

    def _open(self) -> aiohttp.ClientSession:
        address = self.store.address
        # aiohttp's own context was made when it was imported, whatever SSL_CERT_FILE says by now.
        return aiohttp.ClientSession(
            connector=_Connector(limit=KEPT, ssl=address.tls() or True),
            headers=address.headers(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=READ_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    def mark(self, topic: str) -> Mark:
        return self.waiters.mark(topic)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        with self.store.listener.on(mark.topic) as announced:
            if announced is None:
                await self.waiters.wait_async(mark, timeout_s, due_in_s, self.store.poll_s(mark.topic, poll_s))
            elif timeout_s > 0:
                # What came before told nobody, so the caller asks once more.
                await asyncio.wait([asyncio.wrap_future(announced)], timeout=ANNOUNCE_S)
                mark.begin_anew()

    def wall_offset_us(self) -> int:
        return self.store.wall_offset_us()

    async def aclose(self) -> None:
        await asyncio.to_thread(self.store.close)
        await self.sessions.aclose()


class _Connector(aiohttp.TCPConnector):
    """Connections that nobody but their loop can close: once it has ended, nobody is told that they were left open."""

    @property
    def closed(self) -> bool:
        return self._closed or not self._loop.is_running()

    def __del__(self, _warnings: object = None) -> None:
        """Say nothing: there is nothing that the program could do."""
