"""One real server for all tests of this process: each gets a control plane of its own under a path of its own."""

import asyncio
import atexit
import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from msgspec import UNSET

from holdfast.server.app import DEFAULT_OPTIONS, ControlPlane, Options
from holdfast.server.asgi import Receive, Scope, Send
from holdfast.server.process.network_policy import Exposure
from holdfast.server.process.uvicorn_server import Server, serving
from holdfast.stores import Store

JSON = {"content-type": "application/json"}
"""What a body comes with."""


class Planes:
    """An ASGI app that hands a request to the plane that its path begins with."""

    def __init__(self) -> None:
        self._planes: dict[str, ControlPlane] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._count = 0
        self.has_begun = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            self._loop = asyncio.get_running_loop()
            self.has_begun.set()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        _, name, path = scope["path"].split("/", 2)
        await self._planes[name]({**scope, "path": f"/{path}"}, receive, send)

    def add(self, plane: ControlPlane) -> str:
        """Serve the plane; answer the name in front of its paths."""
        self._count += 1
        name = f"t{self._count}"
        self._on_loop(plane.begin)
        self._planes[name] = plane
        return name

    def remove(self, name: str) -> None:
        """Close the plane, as the end of a server does."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._planes[name].close(), self._loop).result()

    def _on_loop(self, act: Callable[[], Any]) -> None:
        async def acting() -> None:
            act()

        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(acting(), self._loop).result()

    def end_waits(self) -> None:
        for plane in self._planes.values():
            plane.end_waits()


@cache
def _start() -> tuple[Planes, str]:
    planes = Planes()
    server = Server(planes, Exposure(port=0))  # type: ignore[arg-type]
    stack = ExitStack()
    url = stack.enter_context(serving(server))
    atexit.register(stack.close)
    planes.has_begun.wait()
    return planes, url


class Served:
    """A store behind a server of this process."""

    def __init__(self, store: Store, options: Options = DEFAULT_OPTIONS) -> None:
        self.planes, base = _start()
        self.plane = ControlPlane(store, options)
        self._name = self.planes.add(self.plane)
        self.url = f"{base}/{self._name}"

    def close(self) -> None:
        self.planes.remove(self._name)


def ask(served: Served, path: str, body: Any = UNSET, token: str = "", key: str = "") -> tuple[int, Any]:
    """The status and the answer of a GET or, with a body, of a POST; `key` makes it idempotent."""
    headers = JSON | ({"authorization": f"Bearer {token}"} if token else {}) | ({"idempotency-key": key} if key else {})
    data = None if body is UNSET else json.dumps(body).encode()
    request = Request(served.url + path, data, headers)  # noqa: S310 - of the test's own server
    try:
        with urlopen(request) as answer:  # noqa: S310 - as above
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)
