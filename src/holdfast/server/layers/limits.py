"""How many requests are under way at once: what is over it is told to come again, before anything is read."""

from typing import Final

from holdfast.commands import Claim
from holdfast.server.asgi import App, Receive, Scope, Send
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.protocol import PATHS, WAIT_PATH, WATCH_PATH

IN_FLIGHT: Final = 2_000
CLAIM_PATH: Final = PATHS[Claim]
RETRY: Final = ((b"retry-after", b"1"), (b"connection", b"close"))


class InFlight:
    """Lets so many requests in at once; those that wait for something are counted apart, by `Lasting`."""

    def __init__(self, app: App, most: int = IN_FLIGHT) -> None:
        self._app = app
        self._most = most
        self.count: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.endswith((WAIT_PATH, WATCH_PATH)) or (scope["query_string"] and path.endswith(CLAIM_PATH)):
            await self._app(scope, receive, send)
            return
        if self.count >= self._most:
            raise WireError("too_many_requests", 503, f"{self._most:,} requests are under way: try again", RETRY)
        self.count += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.count -= 1
