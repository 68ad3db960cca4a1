"""The exceptions of Celery that a task or a caller may meet: `celery.exceptions`."""

from typing import NoReturn

from holdfast.errors import JobCancelled, JobFailed, Picklable, StoreUnavailable
from holdfast.errors import TimeLimitExceeded as SoftTimeLimitExceeded
from holdfast.workers.handlers.outcomes import Bury

TimeoutError = TimeoutError  # noqa: A001, PLW0127 - Celery has it under this name
TaskError = JobFailed
"""What `AsyncResult.get` raises for a task that failed; its text has the type and the message of the task's exception."""
TaskRevokedError = JobCancelled
"""What `AsyncResult.get` raises for a task that was revoked."""
OperationalError = StoreUnavailable
"""What `delay` raises when the store cannot be reached."""


class Reject(Bury):
    """Raise it in a task: its job is a dead letter at once, or with `requeue=True` goes back to its queue and is handed out again."""

    def __init__(self, reason: object = None, requeue: bool = False) -> None:  # noqa: FBT001, FBT002 - as Celery has it
        super().__init__(reason, requeue)
        self.reason = reason
        self.requeue = requeue

    def __str__(self) -> str:
        return "rejected" if self.reason is None else str(self.reason)


class Ignore(Exception):  # noqa: N818 - Celery's name
    """Raise it in a task: its job is acknowledged. It failed if the task gave `update_state` the state FAILURE, else its result is None."""


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


REFUSED = ("CeleryError", "ChordError", "TimeLimitExceeded", "WorkerLostError")


def __getattr__(name: str) -> NoReturn:
    if name not in REFUSED:
        raise AttributeError(f"celery.exceptions has no {name} here")
    from holdfast.surfaces.celery.refusals import refused  # noqa: PLC0415 - which imports this

    raise refused("celery.exceptions", name, __all__)


__all__ = [
    "Ignore",
    "ImproperlyConfigured",
    "MaxRetriesExceededError",
    "NotRegistered",
    "OperationalError",
    "Reject",
    "Retry",
    "SoftTimeLimitExceeded",
    "TaskError",
    "TaskRevokedError",
    "TimeoutError",
]
