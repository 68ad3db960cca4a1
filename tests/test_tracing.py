"""A trace goes on over a queue: from whoever puts to whoever works, on any store, where the program uses OpenTelemetry."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast import ControlPlaneClient, Queue, Worker
from holdfast.stores.memory import MemoryStore
from holdfast.telemetry import tracing
from tests.server.serving import Served
from tests.stores_by_name import url_of

HIDDEN = "s3cret"


class Traced:
    """A provider of this test alone, and what it exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Traced:
    traced = Traced()
    monkeypatch.setattr(trace, "get_tracer", traced.provider.get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: traced.provider)
    return traced


@pytest.fixture(params=["memory", "sqlite", "http"])
def client(request: pytest.FixtureRequest, tmp_path: Path, traced: Traced) -> Iterator[ControlPlaneClient]:
    del traced  # Before the server begins.
    if request.param == "http":
        served = Served(MemoryStore())
        with ControlPlaneClient(served.url) as client:
            yield client
        served.close()
    else:
        with ControlPlaneClient(url_of(request.param, tmp_path)) as client:
            yield client


def is_child(child: ReadableSpan, parent: ReadableSpan) -> bool:
    assert child.context is not None
    assert parent.context is not None
    assert child.context.trace_id == parent.context.trace_id
    return child.parent is not None and child.parent.span_id == parent.context.span_id


def test_the_work_on_a_message_is_a_span_of_the_trace_of_who_put_it(client: ControlPlaneClient, traced: Traced) -> None:
    jobs = Queue.from_name("jobs", client=client)
    with traced.tracer.start_as_current_span("ordering"):
        message_id = jobs.put({"for": HIDDEN})
    with jobs.claimed(claimer="a", lease_s=30), traced.tracer.start_as_current_span("inside"):
        """Work."""
    spans = traced.spans()
    assert is_child(spans["process jobs"], spans["ordering"])
    assert is_child(spans["inside"], spans["process jobs"])
    assert spans["process jobs"].kind is trace.SpanKind.CONSUMER
    assert (spans["process jobs"].attributes or {})["messaging.message.id"] == message_id
    assert not trace.get_current_span().get_span_context().is_valid, "the span was left behind"


def test_a_job_goes_on_in_the_trace_and_so_does_what_it_puts(client: ControlPlaneClient, traced: Traced) -> None:
    jobs, mails = Queue.from_name("jobs", client=client), Queue.from_name("mails", client=client)
    with traced.tracer.start_as_current_span("ordering"):
        jobs.put(1)
    Worker(mails.put, "jobs", client=client).run(until_empty=True)
    with mails.claimed(claimer="a", lease_s=30):
        """Work."""
    spans = traced.spans()
    assert is_child(spans["process jobs"], spans["ordering"])
    assert is_child(spans["process mails"], spans["process jobs"])


def test_a_failure_is_told_without_what_went_wrong(client: ControlPlaneClient, traced: Traced) -> None:
    jobs = Queue.from_name("jobs", client=client)
    jobs.put(1)
    with pytest.raises(LookupError), jobs.claimed(claimer="a", lease_s=30):
        raise LookupError(HIDDEN)
    span = traced.spans()["process jobs"]
    assert span.status.status_code is trace.StatusCode.ERROR
    assert HIDDEN not in span.to_json()


def test_over_http_the_requests_are_spans_of_the_trace_too(traced: Traced) -> None:
    served = Served(MemoryStore())
    with ControlPlaneClient(served.url) as client, traced.tracer.start_as_current_span("ordering"):
        Queue.from_name("jobs", client=client).put(1)
    served.close()
    spans = traced.spans()
    assert is_child(spans["/v1/put"], spans["ordering"])


def test_what_the_caller_says_beside_the_value_stays(client: ControlPlaneClient, traced: Traced) -> None:
    jobs = Queue.from_name("jobs", client=client)
    with traced.tracer.start_as_current_span("ordering"):
        jobs.put(1, metadata={"a": 1, "traceparent": "mine"})
    jobs.put(2)
    first, second = jobs.claim(claimer="a"), jobs.claim(claimer="a")
    assert first is not None
    assert second is not None
    assert first.metadata == {"a": 1, "traceparent": "mine"}
    assert second.metadata is None, "outside of a trace nothing is carried"


def test_where_the_program_does_not_use_opentelemetry_nothing_is_done(monkeypatch: pytest.MonkeyPatch, traced: Traced) -> None:
    monkeypatch.delitem(sys.modules, tracing.OPENTELEMETRY)
    with ControlPlaneClient("memory://") as client:
        jobs = Queue.from_name("jobs", client=client)
        jobs.put(1)
        with jobs.claimed(claimer="a", lease_s=30) as value:
            assert value == 1
    assert tracing.OPENTELEMETRY not in sys.modules
    assert traced.spans() == {}
