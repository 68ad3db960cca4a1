"""The uvicorn server, on uvloop and httptools, with a graceful stop."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import uvicorn

from holdfast.process.event_loops import run_coroutine
from holdfast.server.app import ControlPlane
from holdfast.server.auth.browsers import ANSWER_HEADERS
from holdfast.server.process.connections import Connection
from holdfast.server.process.network_policy import Exposure

KEEP_ALIVE_S: Final = 75
DRAIN_S: Final = 30
"""How long the requests under way may take when the server ends."""

HANDSHAKE_S = 10.0
"""How long a client may take for the handshake of TLS."""

CONNECTIONS: Final = 20_000


class Server(uvicorn.Server):
    """A server of one process, on a socket that listens already. At its end the waits end first: else it would drain as long as they."""

    def __init__(
        self,
        plane: ControlPlane,
        exposure: Exposure = Exposure(),  # noqa: B008 - frozen
        drain_s: int = DRAIN_S,
        when_started: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(_config(plane, exposure, drain_s))
        self._plane = plane
        self._when_started = when_started
        self._exposure = exposure
        # Whoever connects from here on waits until the server runs.
        self._listener = _listen(exposure.host, exposure.port)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._exposure.url(self._listener.getsockname()[1])

    def serve_forever(self) -> None:
        """Run until a signal comes or `should_exit` is set, then drain."""
        run_coroutine(self.serve([self._listener]), self.config.get_loop_factory())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._exposure.certificate is not None:
            # uvicorn has no option for it, and a minute is the loop's own.
            loop = asyncio.get_running_loop()
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=HANDSHAKE_S)  # type: ignore[method-assign]
        await super().startup(sockets)
        self._when_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._plane.end_waits()
        await super().shutdown(sockets)
        # Drained as it was asked to: no reason to die of the signal as well.
        self._captured_signals.clear()


@contextmanager
def serving(server: Server) -> Iterator[str]:
    """Run the server in a thread while the block runs; gives its URL."""
    thread = threading.Thread(target=server.serve_forever, name="holdfast-server", daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.should_exit = True
        thread.join()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise OSError(f"cannot listen on {host}, port {port}: {said}; set another with --host or --port") from error


def _config(plane: ControlPlane, exposure: Exposure, drain_s: int) -> uvicorn.Config:
    return uvicorn.Config(
        plane,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        headers=ANSWER_HEADERS,
        proxy_headers=bool(exposure.proxies),
        forwarded_allow_ips=list(exposure.proxies),
        http=Connection,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=drain_s,
        ws="none",
        ssl_certfile=exposure.certificate,
        ssl_keyfile=exposure.key,
        ssl_ca_certs=None if exposure.client_ca is None else str(exposure.client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if exposure.client_ca is None else ssl.CERT_REQUIRED,
    )
