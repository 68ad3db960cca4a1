"""How a job ends, and the exceptions by which a handler decides that."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from holdfast.codec import check_duration, keepable
from holdfast.errors import Picklable
from holdfast.records import MaybeRaw, Message, seconds_in

TEXT_MOST = 10_000
"""How many characters of an exception's text are kept."""

UNKNOWN_FOR_S: float | None = 86_400.0
"""See `ProcessOptions.unknown_for_s`."""

UNKNOWN_FIRST_S, UNKNOWN_MOST_S = 0.5, 60.0
"""How long such a message waits before the next worker looks at it: as long as it is old, within these."""

How = Literal["done", "failed", "buried", "snoozed", "cancelled", "released", "suspended", "settled", "lost"]


class Snooze(Exception):  # noqa: N818 - what a handler says, not what went wrong
    """Raise it in a handler to be asked again in `delay_s` seconds; no attempt is burnt."""

    delay_s: float

    def __init__(self, delay_s: float, reason: str | None = None) -> None:
        super().__init__(delay_s, reason)
        self.delay_s = check_duration(delay_s, "delay_s")
        self.reason = reason


class Retry(Exception):  # noqa: N818 - as above
    """Raise it in a handler that failed and knows when trying again makes sense; None leaves that to the back-off."""

    delay_s: float | None

    def __init__(self, reason: str = "", *, delay_s: float | None = None) -> None:
        super().__init__(reason)
        self.delay_s = None if delay_s is None else check_duration(delay_s, "delay_s")


class Bury(Exception):  # noqa: N818 - as above
    """Raise it in a handler that can never succeed: the message goes to the dead letters at once."""


class BatchFailed(Exception):  # noqa: N818 - as above
    """Raise it in a function of a batch: the jobs at these places of its list failed, each with its exception. The others are done.

    An exception may be a `Snooze`, a `Retry` or a `Bury`. The results of the others are None, or those at their places in `results`.
    """

    def __init__(self, failed: Mapping[int, BaseException], results: Sequence[Any] | None = None) -> None:
        super().__init__(failed, results)
        self.failed: dict[int, BaseException] = dict(failed)
        self.results: Sequence[Any] | None = results

    def __str__(self) -> str:
        return f"{len(self.failed)} jobs of a batch failed"


class Throttle(Picklable):
    """Raise it in a handler whose service asks for less: nothing of the queue, or of the job's group, is handed out for `delay_s` s.

    It holds for every worker of the queue. The job goes back to its place, and no attempt is burnt.
    """

    delay_s: float

    def __init__(self, delay_s: float, reason: str | None = None, *, group: bool = False) -> None:
        super().__init__(delay_s, reason, group)
        self.delay_s = check_duration(delay_s, "delay_s")
        self.reason = reason
        self.group = group


class UnknownTask(Exception):  # noqa: N818 - as above
    """The message is for a task, a version or a parameter that this worker does not have; another one may."""


class Outcome(Struct, frozen=True, omit_defaults=True):
    """How one execution of a job ended."""

    how: How
    stored: MaybeRaw = None
    """The result as it is kept, if it is."""
    missing: str | None = None
    """Why the result of what was done cannot be kept."""
    error: str | None = None
    delay_s: float | None = None
    """When to try again; None leaves that to the back-off."""
    trace: str | None = None
    """Where it was raised, if that was in another process."""
    throttles: Literal["queue", "group"] | None = None
    """What is to be throttled for `delay_s`, for all workers."""


DONE = Outcome("done")
LOST = Outcome("lost")
SETTLED = Outcome("settled")
"""Its handler has settled it, in a transaction of its own."""
RELEASED = Outcome("released")


def unknown(error: UnknownTask, message: Message, unknown_for_s: float | None) -> Outcome:
    """Give the message back for other workers, which burns nothing; after so long bury it."""
    buried = [ending.until for ending in message.history if ending.how == "buried"]
    age_s = seconds_in(message.since - max([message.created_at, *buried]))
    if unknown_for_s is not None and age_s >= unknown_for_s:
        return Outcome("buried", error=shown(error))
    return Outcome("snoozed", error=shown(error), delay_s=min(max(age_s, UNKNOWN_FIRST_S), UNKNOWN_MOST_S))


def shown(error: BaseException) -> str:
    """An exception in one line."""
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def text_of(error: BaseException) -> str:
    """What an exception says, as every store can keep it."""
    try:
        return keepable(str(error)[:TEXT_MOST])
    except Exception:  # noqa: BLE001 - its `__str__` is foreign code
        return "(its text cannot be shown)"
