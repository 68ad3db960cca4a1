"""Connections of tasks to one server: those of each event loop are kept open, and used again."""

import io

import aiohttp

from holdfast.stores.http.address import Address
from holdfast.stores.http.connections import CONNECT_S, KEPT, READ_S
from holdfast.stores.http.replies import Reply
from holdfast.stores.per_loop import PerLoop
from holdfast.stores.retrying import Lost
from holdfast.telemetry.tracing import trace_fields

LARGE_BYTES = 2**20


class AsyncConnections:
    """Sends requests to one server, from any task."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._sessions = PerLoop(self._open, aiohttp.ClientSession.close, aiohttp.ClientSession.detach)

    async def send(self, path: str, body: bytes) -> Reply:
        """Send a command and read the reply; raises `Lost` if there is none."""
        try:
            # aiohttp wants a large body as a file: it sends it bit by bit then.
            data = body if len(body) < LARGE_BYTES else io.BytesIO(body)
            url, session = self._address.base + path, self._sessions.get()
            async with session.post(url, data=data, headers=trace_fields(), allow_redirects=False) as reply:
                return Reply(reply.status, reply.headers, await reply.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Lost(f"{self._address.url} cannot be reached: {error}", maybe_applied=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Lost(self._address.cut_off(error), maybe_applied=True) from error

    def close(self) -> None:
        """Have those of every event loop closed, without waiting for it."""
        self._sessions.close()

    async def aclose(self) -> None:
        """Close those of this event loop."""
        await self._sessions.aclose()

    def _open(self) -> aiohttp.ClientSession:
        # aiohttp's own context was made when it was imported, whatever SSL_CERT_FILE says by now.
        return aiohttp.ClientSession(
            connector=_Connector(limit=KEPT, ssl=self._address.tls() or True),
            headers=self._address.headers(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=READ_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )


class _Connector(aiohttp.TCPConnector):
    """Connections that only their loop can close: once it has ended, there is no warning that they were left open."""

    @property
    def closed(self) -> bool:
        return self._closed or not self._loop.is_running()

    def __del__(self, _warnings: object = None) -> None:
        """Say nothing: there is nothing that the program could do."""
