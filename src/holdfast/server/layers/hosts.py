"""Accepts only requests whose Host header names this server."""

from collections.abc import Awaitable, Collection

from holdfast.server.asgi import App, Receive, Scope, Send, header
from holdfast.stores.http.problems import WireError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Hosts:
    """Refuses a request whose Host header names none of these; `*` allows any."""

    def __init__(self, app: App, allowed: Collection[str]) -> None:
        self._app = app
        self._allowed = frozenset(host.lower() for host in allowed)
        # Nearly all requests bring the same few headers.
        self._known: set[bytes] = set()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        host = header(scope, b"host") or b""
        if host not in self._known and "*" not in self._allowed:
            self._check(host)
        return self._app(scope, receive, send)

    def _check(self, host: bytes) -> None:
        name = host.decode("latin-1").lower()
        name = name if name.endswith("]") else name.rpartition(":")[0] or name
        if name not in self._allowed:
            raise WireError("wrong_host", 400, "the Host header does not name this server: start it with --allow-host")
        if len(self._known) < len(self._allowed) * 4:
            self._known.add(host)
