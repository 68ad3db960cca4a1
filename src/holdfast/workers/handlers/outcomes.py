"""How a job ends, and the exceptions by which a handler decides that."""

from typing import Literal

from msgspec import Struct

from holdfast.codec import check_duration, keepable
from holdfast.records import MaybeRaw

TEXT_MOST = 10_000
"""How many characters of an exception's text are kept."""

How = Literal["done", "failed", "buried", "snoozed", "cancelled", "released", "lost"]


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


DONE = Outcome("done")
LOST = Outcome("lost")
RELEASED = Outcome("released")


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
