"""What it means for a job that its handler raised something."""

import asyncio
from collections.abc import Callable

from holdfast.workers.handlers.jobs import JobContext, StopReason, stop_error
from holdfast.workers.handlers.outcomes import (
    LOST,
    RELEASED,
    UNKNOWN_FOR_S,
    Bury,
    Outcome,
    Retry,
    Snooze,
    Throttle,
    UnknownTask,
    shown,
    text_of,
    unknown,
)

Judge = Callable[[BaseException, JobContext], BaseException | None]
"""May turn what a handler raised into something else: a `Snooze`, `Retry` or `Bury`."""


def judged(error: BaseException, job: JobContext, judge: Judge | None = None, unknown_for_s: float | None = UNKNOWN_FOR_S) -> Outcome:
    """How the job ends: it failed, or it only sleeps, waits, was lost or is given back."""
    reason = job.stop_reason
    if reason is not None and isinstance(error, asyncio.CancelledError | type(stop_error(job))):
        return _stopped(reason, job)
    if (ended := job.durable.ended_by(error)) is not None:
        return ended
    if isinstance(error, UnknownTask):
        return unknown(error, job.message, unknown_for_s)
    if judge is not None:
        try:
            error = judge(error, job) or error
        except Exception as failure:  # noqa: BLE001 - it is foreign code, and the job must end somehow
            failure.__context__ = error
            error = failure
    job.raised = error
    return _raised(error, job)


def _raised(error: BaseException, job: JobContext) -> Outcome:
    match error:
        case Snooze():
            return Outcome("snoozed", error=error.reason, delay_s=error.delay_s)
        case Throttle():
            return Outcome("snoozed", error=error.reason, delay_s=error.delay_s, throttles="group" if error.group else "queue")
        case Retry():
            return Outcome("failed", error=text_of(error) or "the handler asked for a retry", delay_s=error.delay_s)
        case Bury():
            return Outcome("buried", error=text_of(error) or "the handler buried it")
        case _ if job.durable.is_final(error):
            return Outcome("buried", error=shown(error))  # Another run would end in the same way.
        case _:
            return Outcome("failed", error=shown(error))


def _stopped(reason: StopReason, job: JobContext) -> Outcome:
    match reason:
        case "cancelled":
            return Outcome("cancelled", error=str(stop_error(job)))
        case "time":
            return Outcome("failed", error=shown(stop_error(job)))
        case "stopping":
            return RELEASED
        case "lost":
            return LOST
