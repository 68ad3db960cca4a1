"""What `holdfast worker --probe` serves: whether the process lives, whether it is ready for work, and its meters."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from holdfast.client import ControlPlaneClient
from holdfast.commands import Count, Stats
from holdfast.errors import HoldfastError
from holdfast.server.metrics import queue_lines
from holdfast.telemetry.meters import CONTENT_TYPE, text_of_meters
from holdfast.workers.orders import Orders
from holdfast.workers.registry import WorkerHealth

READY = ("working", "paused", "open")
"""A worker that is paused, or whose circuit breaker is open, works as it was told."""


class Probed(Protocol):
    """A worker, as far as a probe looks."""

    orders: Orders

    @property
    def client(self) -> ControlPlaneClient: ...
    @property
    def health(self) -> WorkerHealth: ...


@contextmanager
def probed(workers: Sequence[Probed], address: str | None) -> Iterator[None]:
    """Serve `/livez`, `/readyz` and `/metrics` at an address such as `:8080` while the block runs; without one, nothing."""
    if address is None:
        yield
        return
    server = ThreadingHTTPServer(place_of(address), handler_of(workers))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="holdfast-probe", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def place_of(address: str) -> tuple[str, int]:
    """Host and port; without a host, every address of the machine."""
    host, mark, port = address.rpartition(":")
    if not mark or not port.isdecimal() or int(port) > 65_535:  # noqa: PLR2004 - the highest port there is
        raise ValueError(f"--probe {address} is not an address: write :8080 or 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def handler_of(workers: Sequence[Probed]) -> type[BaseHTTPRequestHandler]:
    """What answers requests about these workers."""

    class Probe(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/livez":
                    self._answer(200, b"ok\n")
                case "/readyz":
                    reasons = unready(workers)
                    self._answer(503 if reasons else 200, ("\n".join(reasons or ["ok"]) + "\n").encode())
                case "/metrics":
                    self._answer(200, text_of_meters() + text_of_queues(workers), CONTENT_TYPE.decode())
                case _:
                    self._answer(404, b"there are /livez, /readyz and /metrics\n")

        def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing: a probe comes every few seconds."""

    return Probe


def text_of_queues(workers: Sequence[Probed]) -> bytes:
    """How the queues of the workers are; nothing of those whose store is away."""
    found: dict[str, Stats] = {}
    for worker in workers:
        if worker.health.state in READY:
            with suppress(HoldfastError):
                found |= {queue: worker.client.store.execute(Count(queue)) for queue in worker.orders.queues if queue not in found}
    return ("\n".join(queue_lines(list(found.items()))) + "\n").encode()


def unready(workers: Sequence[Probed]) -> list[str]:
    """Why work should not be expected from here."""
    found = ((number, worker.health) for number, worker in enumerate(workers, 1))
    return [
        f"worker {number} is {health.state}{f': {health.error}' if health.error else ''}"
        for number, health in found
        if health.state not in READY
    ]
