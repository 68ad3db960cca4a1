"""Counts and optionally logs every request: route, status, time and caller, never its contents."""

import logging
import time
from collections.abc import Collection

from holdfast.server.asgi import LEFT, STATUS, App, Receive, Scope, Send, route_of
from holdfast.server.auth.callers import KEY
from holdfast.server.metrics import Metrics

CODE = "holdfast.code"
"""Where the code of a problem is in the scope, once there is one."""

log: logging.Logger = logging.getLogger("holdfast.server.requests")


class Telemetry:
    """Looks on from outside."""

    def __init__(self, app: App, metrics: Metrics, routes: Collection[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        try:
            await self._app(scope, receive, send)
        finally:
            self._tell(scope, scope.get(STATUS, 0), time.perf_counter() - started)

    def _tell(self, scope: Scope, status: int, elapsed_s: float) -> None:
        route = route_of(scope, self._routes)
        code = scope.get(CODE)
        self._metrics.answered(route, status, elapsed_s, code)
        if log.isEnabledFor(logging.INFO):
            caller = scope.get(KEY)
            fields = {"route": route, "status": status, "ms": round(elapsed_s * 1_000, 3), "code": code, "caller": caller and caller.name}
            said = code or ("left" if status == LEFT else "ok")
            whom = caller.name if caller else "nobody known"
            log.info("%s %s %s in %.1f ms for %s", route, status, said, elapsed_s * 1_000, whom, extra={"fields": fields})
