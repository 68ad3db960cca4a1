"""All exceptions of Holdfast, in one tree.

A message names the event, the thing it befell, and the way out. Bad arguments are the built-in `ValueError` and `TypeError`, raised before
anything is sent.
"""

import queue
from collections.abc import Sequence
from typing import Any

from holdfast.records import Lease, Receipt


class Picklable(Exception):
    """An error that is the same after it was pickled, whatever its constructor asks for: it crosses process pools."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(kind: type[Picklable], args: tuple[Any, ...], state: dict[str, Any]) -> Picklable:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class HoldfastError(Picklable):
    """The root of the tree."""


class ClaimLost(HoldfastError):
    """A claim is no longer held: its lease ended, it was settled, or its queue was removed."""

    def __init__(self, message: str, lost: Sequence[Receipt] = ()) -> None:
        super().__init__(message)
        self.lost: list[Receipt] = list(lost)


class LeaseLost(HoldfastError):
    """A lease is no longer held."""


class LeaseHeld(HoldfastError):
    """Another holder has the lease, or, of one with capacity, too many others have it or stand in line for it.

    `holders` are those of a lease with capacity, at most 100, by when they end; `expires_in_s` is when the first of all in the way ends.
    """

    def __init__(self, message: str, lease: Lease | None = None, expires_in_s: float | None = None, holders: Sequence[Lease] = ()) -> None:
        super().__init__(message)
        self.lease = lease
        self.holder: str | None = lease.holder if lease else None
        self.expires_in_s = expires_in_s
        self.holders: list[Lease] = list(holders)


class LineFull(LeaseHeld):
    """As many wait in line for the lease as may."""


class LockTimeout(HoldfastError, TimeoutError):
    """The lock did not become free in time."""


class QueueFull(HoldfastError, queue.Full):
    """The queue has reached its `maxsize`."""


class KeyInFlight(HoldfastError):
    """A put with `reject` met a message under the same key."""


class Refused(HoldfastError):
    """A step that must apply whole did not apply; nothing was written."""

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step


class IdTaken(Refused):
    """A put with `if_id="reject"` met a message under the same id that has another value."""


class RateLimited(Refused, TimeoutError):
    """The rate of a limiter is used up for longer than the caller would wait; nothing was used."""

    def __init__(self, message: str, due_in_s: float = 0.0) -> None:
        super().__init__(message)
        self.due_in_s = due_in_s


class Compacted(HoldfastError):
    """The events asked for are gone (or were never in this store): take a fresh snapshot."""

    def __init__(self, message: str, oldest: int) -> None:
        super().__init__(message)
        self.oldest = oldest


class Closed(HoldfastError):
    """The store, client or queue was closed."""


class NotAllowed(HoldfastError):
    """The caller may not do this."""


class JobFailed(HoldfastError):
    """The job whose result was asked for is dead: it failed for good."""


class ChildFailed(JobFailed):
    """A job that a durable job has called failed, was cancelled, or is gone; `queue` and `id` name it."""

    def __init__(self, message: str, queue: str, id: str) -> None:
        super().__init__(message)
        self.queue = queue
        self.id = id


class JobCancelled(HoldfastError):
    """The job was cancelled."""


class ResultMissing(HoldfastError):
    """The job is gone without a result: its worker keeps none, its result has expired, or the job never existed."""


class ResultNotKept(ResultMissing):
    """It was done, and will not be repeated, but its result is not kept: it cannot be encoded, is too large, or its worker keeps none."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class JobGone(HoldfastError):
    """The job that a signal is for is not in its queue any more: it has ended, or it never was."""


class StepsChanged(HoldfastError):
    """The code of a durable job does not fit what is recorded of it: a step would begin before recorded ones were asked for."""


class StepFailed(HoldfastError):
    """A step of a durable job has failed for good; raised again whenever the job is replayed."""

    def __init__(self, name: str, type: str, message: str) -> None:
        super().__init__(f"step {name!r} failed: {type}: {message}" if message else f"step {name!r} failed: {type}")
        self.name = name
        self.type = type
        """The name of the class of what it raised last."""
        self.message = message


class StepTooLarge(HoldfastError):
    """The result of a step is too large to be recorded."""


class JobTooLong(HoldfastError):
    """A durable job has recorded as many steps, or as much, as one job may."""


class ScheduleMissing(HoldfastError):
    """There is no schedule of this name."""


class TimeLimitExceeded(HoldfastError, TimeoutError):
    """The job ran for longer than it may."""


class WorkerStopping(HoldfastError):
    """The worker ends, and the job is to end with it; it will be run again."""


class ExecutionUnknown(HoldfastError):
    """An execution that must happen once was begun by a process that died: it may or may not have happened."""


class ExecutionRunning(HoldfastError):
    """An execution that must happen once is running in another process."""


class TookTooLong(HoldfastError, TimeoutError):
    """A command took longer than the server allows one, and was ended; nothing was written."""


class StoreMoved(HoldfastError):
    """The data was copied to another store; open that one instead, or take the copy back with `undo_copy`."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message)
        self.url = url


class StoreUnavailable(HoldfastError):
    """The store could not be reached or did not respond in time; nothing was written."""


class OutcomeUnknown(StoreUnavailable):
    """The command was perhaps applied, perhaps not: ask before repeating it."""


class StoreError(HoldfastError):
    """The store reported an error of its own."""


class StoreFull(StoreError):
    """No room is left on the disk, in the map or in the quota of a namespace; nothing was written."""


class StoreCorrupted(StoreError):
    """The file is damaged or not a store of ours."""


class MissingExtra(StoreError, ImportError):
    """A package that this store, or this part of Holdfast, needs is not installed."""


class StoreMissing(StoreError):
    """The URL has no store, and `create=False` was given."""


class SchemaTooNew(StoreError):
    """The file was written by a newer version of Holdfast."""
