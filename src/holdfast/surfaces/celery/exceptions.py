"""The exceptions of Celery that a task or a caller may meet: `celery.exceptions`."""

from holdfast.errors import JobFailed, Picklable, TimeLimitExceeded
from holdfast.workers.handlers.outcomes import Bury

TimeoutError = TimeoutError  # noqa: A001, PLW0127 - Celery has it under this name
SoftTimeLimitExceeded = TimeLimitExceeded
TaskError = JobFailed
"""What `AsyncResult.get` raises for a task that failed; its text has the type and the message of the task's exception."""
Reject = Bury
"""Makes the job a dead letter at once."""


class Retry(Picklable):
    """Raised by `Task.retry`: the task is tried again."""

    def __init__(self, exc: BaseException | None, delay_s: float) -> None:
        super().__init__(f"Retry in {delay_s:g}s" + ("" if exc is None else f": {exc!r}"))
        self.exc = exc
        self.delay_s = delay_s


class MaxRetriesExceededError(Exception):
    """The task was tried as often as it may be."""


class ImproperlyConfigured(Exception):  # noqa: N818 - Celery's name
    """A setting or an option that is not supported, with the remedy."""


class NotRegistered(KeyError):  # noqa: N818 - Celery's name
    """No task of this name is known."""


__all__ = [
    "ImproperlyConfigured",
    "MaxRetriesExceededError",
    "NotRegistered",
    "Reject",
    "Retry",
    "SoftTimeLimitExceeded",
    "TaskError",
    "TimeoutError",
]
