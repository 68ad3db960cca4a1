"""The log lines about steps of durable jobs."""

import logging

from holdfast.records import Message
from holdfast.wording import seconds
from holdfast.workers.handlers.outcomes import text_of
from holdfast.workers.handlers.tracebacks import users_part

log: logging.Logger = logging.getLogger("holdfast.worker")


def log_failed_step(message: Message, step: str, attempt: str, delay_s: float, error: Exception) -> None:
    """Say that a step failed and is tried again, once that is recorded."""
    raised = type(error), error, users_part(error.__traceback__)
    values = step, message.id, message.queue, attempt, seconds(delay_s), type(error).__name__, text_of(error)
    log.warning("step %r of job %s of queue %r failed (%s), again in %s: %s: %s", *values, exc_info=raised)
