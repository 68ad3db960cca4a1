"""Makes a span for every request in its client's trace, if OpenTelemetry is set up."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from holdfast.server.asgi import STATUS, App, Receive, Scope, Send, route_of
from holdfast.telemetry.meters import OTHER

try:
    from opentelemetry import propagate, trace
except ModuleNotFoundError:
    IS_INSTALLED = False
else:
    IS_INSTALLED = True

if TYPE_CHECKING:
    from opentelemetry.trace import Span

SERVER_ERROR: Final = 500
ATTRIBUTES: Final = {"messaging.system": "holdfast"}
TRACE_HEADERS: Final = frozenset({b"traceparent", b"tracestate", b"baggage"})


def traced(app: App, routes: Collection[str]) -> App:
    """The app in spans; itself where OpenTelemetry is not installed, or was not set up before the server began."""
    if not IS_INSTALLED or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return app
    return Tracing(app, routes)


class Tracing:
    """Begins a span with a request, and ends it with its answer. It has the route and the status, never what was asked."""

    def __init__(self, app: App, routes: Collection[str]) -> None:
        self._app = app
        self._routes = routes
        self._tracer = trace.get_tracer("holdfast.server")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"] if name in TRACE_HEADERS}
        with self._tracer.start_as_current_span(
            OTHER, propagate.extract(headers), kind=trace.SpanKind.SERVER, attributes=ATTRIBUTES, record_exception=False
        ) as span:
            await self._app(scope, receive, send)
            self._answered(span, scope, scope.get(STATUS, SERVER_ERROR))

    def _answered(self, span: "Span", scope: Scope, status: int) -> None:
        # Only now is the path without its namespace.
        route = route_of(scope, self._routes)
        span.update_name(route)
        span.set_attributes({"http.request.method": scope["method"], "http.route": route, "http.response.status_code": status})
        if status >= SERVER_ERROR:
            span.set_status(trace.StatusCode.ERROR)
