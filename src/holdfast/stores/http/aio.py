"""A store behind a server, for tasks: connections of each event loop's own, and the listener of the store for threads."""

import asyncio
import contextlib
import io
import ssl
import weakref
from typing import TYPE_CHECKING, TypeVar

import aiohttp

from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.stores import Guarantees
from holdfast.stores.cancelled import take_back
from holdfast.stores.http.connections import ANNOUNCE_S, CONNECT_S, KEPT, READ_S
from holdfast.stores.http.protocol import PATHS, encode_command
from holdfast.stores.http.replies import Reply
from holdfast.stores.retrying import Lost, Tries, named, retry_async
from holdfast.stores.waiting import Mark, Waiters
from holdfast.tracing import trace_fields

if TYPE_CHECKING:
    from holdfast.stores.http.store import HttpStore

R = TypeVar("R")

LARGE_BYTES = 2**20

CLOSE_S = 5.0
"""How long closing waits for an event loop to hang up."""


class AsyncHttpStore:
    """The same store, for tasks."""

    def __init__(self, store: "HttpStore") -> None:
        self.store = store
        self.url: str = store.url
        self.limits: Limits = store.limits
        self.waiters: Waiters = store.waiters
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=READ_S)
        # A loop that is gone takes its own with it.
        self._sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = weakref.WeakKeyDictionary()

    @property
    def guarantees(self) -> Guarantees:
        """Those of the store behind the server; asked for once, which blocks."""
        return self.store.guarantees

    async def execute(self, command: Command[R]) -> R:
        self.store.refuse_if_closed()
        command.measure(self.limits)
        command = named(command)
        url, body = self.url + PATHS[type(command)], encode_command(command)

        async def attempt() -> R:
            self.store.refuse_if_closed()
            return self.store.answer(command, await self._send(url, body))

        try:
            return await retry_async(attempt, Tries(self.store.patience))
        except BaseException as error:
            if not isinstance(error, Exception):  # Cancelled: nobody will look after what it gets.
                take_back(self.store, command)
            raise

    async def _send(self, url: str, body: bytes) -> Reply:
        try:
            # aiohttp wants a large body as a file: it sends it bit by bit then.
            data = body if len(body) < LARGE_BYTES else io.BytesIO(body)
            async with self._session().post(url, data=data, headers=trace_fields(), allow_redirects=False) as reply:
                return Reply(reply.status, reply.headers, await reply.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Lost(f"{self.url} cannot be reached: {error}", maybe_applied=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Lost(f"{self.url} was cut off before it answered: {error}", maybe_applied=True) from error

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            # aiohttp's own context was made when it was imported, whatever SSL_CERT_FILE says by now.
            verified = ssl.create_default_context() if self.store.address.scheme == "https" else True
            connector = aiohttp.TCPConnector(limit=KEPT, ssl=verified)
            headers = self.store.address.headers()
            session = aiohttp.ClientSession(
                connector=connector, headers=headers, timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
            self._sessions[loop] = session
        return session

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
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Close both faces; from a thread, for every event loop that still runs."""
        self.store.close()
        for loop, session in list(self._sessions.items()):
            # One that runs hangs up by itself; for one that stands still nobody can.
            if loop.is_running():
                with contextlib.suppress(TimeoutError, RuntimeError):
                    asyncio.run_coroutine_threadsafe(session.close(), loop).result(CLOSE_S)
        self._sessions.clear()
