"""Connections of threads to one server: kept open, and used again."""

from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from holdfast.stores.http.address import Address
from holdfast.stores.http.replies import Reply
from holdfast.stores.retrying import Lost
from holdfast.telemetry.tracing import trace_fields

CONNECT_S = 5.0
READ_S = 30.0
"""How long a server may take to answer a command."""

KEPT = 64
"""How many connections are kept open; more threads than that open others for a moment."""


JOINED_BYTES = 64 * 1024
"""A longer body is sent behind the head of its request: to join them would copy it."""


class _AtOnce(HTTPConnection):
    """Sends the head of a request and its body as one: a server that gets them one after the other has to wait, and to read twice."""

    _head: bytes | None = None
    """A head that waits for its body."""
    _holds = False

    def putrequest(self, method: str, *arguments: Any, **options: Any) -> None:
        self._holds = method == "POST"
        super().putrequest(method, *arguments, **options)

    def send(self, data: Any) -> None:
        if self._holds:
            self._holds, self._head = False, data
            return
        head, self._head = self._head, None
        if head is None:
            super().send(data)
        elif len(data) <= JOINED_BYTES:
            super().send(head + data)
        else:
            super().send(head)
            super().send(data)


class _AtOnceSecured(_AtOnce, HTTPSConnection):
    """The same, over TLS."""


class Connections:
    """Sends requests to one server, from any thread."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._headers = address.headers()
        self._timeout = urllib3.Timeout(connect=CONNECT_S, read=READ_S)
        options: dict[str, Any] = {"maxsize": KEPT, "retries": False, "timeout": self._timeout}
        if (context := address.tls()) is None:
            self._pool = urllib3.HTTPConnectionPool(address.host, address.port, **options)
            self._pool.ConnectionCls = _AtOnce
        else:
            self._pool = urllib3.HTTPSConnectionPool(address.host, address.port, ssl_context=context, **options)
            self._pool.ConnectionCls = _AtOnceSecured

    def send(self, path: str, body: bytes | None = None, timeout_s: float | None = None) -> Reply:
        """Send a command, or a question without a body, and read the reply; raises `Lost` if there is none, or none within `timeout_s`."""
        timeout = self._timeout if timeout_s is None else urllib3.Timeout(total=timeout_s)
        method, headers = "GET" if body is None else "POST", self._headers | trace_fields()
        try:
            reply = self._pool.urlopen(method, self._address.path + path, body, headers, redirect=False, timeout=timeout)
        except (NewConnectionError, ConnectTimeoutError) as error:
            raise Lost(f"{self._address.url} cannot be reached: {error}", maybe_applied=False) from error
        except (HTTPError, OSError) as error:
            raise Lost(self._address.cut_off(error), maybe_applied=True) from error
        return Reply(reply.status, reply.headers, reply.data)

    def close(self) -> None:
        self._pool.close()


def one_connection(address: Address, read_s: float) -> HTTPConnection:
    """A connection outside the pool, for requests that last."""
    timeout = urllib3.Timeout(connect=CONNECT_S, read=read_s)
    if (context := address.tls()) is not None:
        return HTTPSConnection(address.host, address.port, timeout=timeout.read_timeout, ssl_context=context)
    return HTTPConnection(address.host, address.port, timeout=timeout.read_timeout)
