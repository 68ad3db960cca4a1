"""Requests are spans of their client's trace, where OpenTelemetry is set up."""

from collections.abc import Iterator

import pytest
import urllib3
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast.server.layers import tracing
from holdfast.stores.memory import MemoryStore
from tests.server.serving import JSON, Served
from tests.server.test_routes import until

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


@pytest.fixture
def served(exporter: InMemorySpanExporter) -> Iterator[Served]:
    served = Served(MemoryStore())
    yield served
    served.close()


def spans(exporter: InMemorySpanExporter, count: int) -> tuple[ReadableSpan, ...]:
    until(lambda: len(exporter.get_finished_spans()) >= count)
    return exporter.get_finished_spans()


def test_a_request_is_a_span_in_the_trace_of_its_client(served: Served, exporter: InMemorySpanExporter) -> None:
    headers = JSON | {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    urllib3.request("POST", f"{served.url}/v1/count", body=b'{"queue":"jobs"}', headers=headers, retries=False)
    (span,) = spans(exporter, 1)
    assert span.name == "/v1/count"
    assert span.context is not None
    assert (f"{span.context.trace_id:032x}", span.parent and f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert dict(span.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/v1/count",
        "http.response.status_code": 200,
        "messaging.system": "holdfast",
    }


def test_a_path_with_names_in_it_is_told_by_its_form(served: Served, exporter: InMemorySpanExporter) -> None:
    urllib3.request("GET", f"{served.url}/v1/queues/s3cret/jobs/s3cret", retries=False)
    (span,) = spans(exporter, 1)
    route = "/v1/queues/{queue}/jobs/{id}"
    assert (span.name, dict(span.attributes or {})["http.route"]) == (route, route)
    assert "s3cret" not in span.to_json()
    told = urllib3.request("GET", f"{served.url}/metrics", retries=False).data.decode()
    assert f'holdfast_requests_total{{route="{route}",status="200"}} 1' in told.splitlines()


def test_a_span_has_nothing_of_what_was_asked(served: Served, exporter: InMemorySpanExporter) -> None:
    urllib3.request("POST", f"{served.url}/s3cret?s3cret=1", body=b'{"s3cret":', headers={"cookie": "s3cret"}, retries=False)
    (span,) = spans(exporter, 1)
    assert span.name == "other"
    assert "s3cret" not in span.to_json()


def test_where_nobody_set_opentelemetry_up_nothing_stands_between(monkeypatch: pytest.MonkeyPatch) -> None:
    async def app(*_: object) -> None:
        """Never called."""

    assert tracing.traced(app, ()) is app, "installed, and not set up"
    monkeypatch.setattr(tracing, "IS_INSTALLED", False)
    assert tracing.traced(app, ()) is app
