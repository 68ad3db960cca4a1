"""The errors of a job that are kept: its newest three, with where they were raised."""

from datetime import UTC, datetime

from msgspec import Raw, json

from holdfast.codec import encode_key
from holdfast.results import JobError
from holdfast.workers.handlers.outcomes import Outcome, text_of
from holdfast.workers.handlers.tracebacks import kept_trace, trace_of
from holdfast.workers.running.runs import Run

KEPT = 3
"""How many errors of a job are kept."""


def error_key(run: Run) -> str:
    """Where the error of a run is kept: in the place of the one three failures ago."""
    return error_keys(run.message.id)[run.message.failures % KEPT]


def error_keys(message_id: str) -> list[str]:
    """Where the errors of a job are kept."""
    return [encode_key((message_id, number)) for number in range(KEPT)]


def error_of(run: Run, outcome: Outcome) -> Raw:
    """The error with which a run ended."""
    raised, said = run.job.raised, outcome.error or ""
    if raised is None:  # In another process, or by a limit: its text begins with its type.
        kind, _, message = said.partition(": ")
        kind, message = (kind, message) if kind.isidentifier() else ("", said)
        trace = outcome.trace
    else:
        kind, message, trace = type(raised).__qualname__, text_of(raised), trace_of(raised)
    message_of = run.message
    return Raw(
        json.encode(
            JobError(
                at=datetime.now(UTC),
                attempt=message_of.attempts,
                worker=message_of.holder or "",
                type=kind,
                message=message,
                traceback=None if trace is None else kept_trace(trace),
            )
        )
    )
