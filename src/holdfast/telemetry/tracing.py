"""Traces over queues: a message carries the trace of its producer, and the work on it is a span of that trace.

Only where the program itself has imported OpenTelemetry; nothing here does so first, and without it nothing is done.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Raw

from holdfast.codec.metadata import read_metadata

if TYPE_CHECKING:
    from opentelemetry.context import Context

OPENTELEMETRY: Final = "opentelemetry.trace"


def is_traced() -> bool:
    """Whether there can be a trace at all."""
    return OPENTELEMETRY in sys.modules


def trace_fields() -> dict[str, str]:
    """What carries the current trace, by its W3C names; nothing outside of one."""
    if not is_traced():
        return {}
    from opentelemetry import propagate, trace  # noqa: PLC0415 - the program has it

    fields: dict[str, str] = {}
    if trace.get_current_span().get_span_context().is_valid:
        propagate.inject(fields)
    return fields


@contextmanager
def working_on(queue: str, message_id: str, metadata: Raw | None) -> Iterator[Callable[[], None]]:
    """A span for the work on a message, in the trace that its metadata names; call what it gives if the work fails.

    It has the names of the queue and the message, never what is in it or what went wrong.
    """
    from opentelemetry import trace  # noqa: PLC0415 - as above

    attributes = {
        "messaging.system": "holdfast",
        "messaging.operation.type": "process",
        "messaging.destination.name": queue,
        "messaging.message.id": message_id,
    }
    with trace.get_tracer("holdfast").start_as_current_span(
        f"process {queue}",
        _trace_in(metadata),
        kind=trace.SpanKind.CONSUMER,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield lambda: span.set_status(trace.StatusCode.ERROR)


def _trace_in(metadata: Raw | None) -> "Context | None":
    from opentelemetry import propagate  # noqa: PLC0415 - as above

    fields = {} if metadata is None else read_metadata(metadata)
    return propagate.extract({name: value for name, value in fields.items() if isinstance(value, str)})
