"""What a run waits for, and how it ends when it waits for nothing that happens here."""

from msgspec import Raw, Struct


class Wait(Struct, frozen=True):
    """Something that a branch of a handler waits for."""

    what: str
    """In words, for people."""
    due: float | None = None
    """When time ends it, by the clock of the worker; None if time does not."""
    names: tuple[str, ...] = ()
    """The signals that end it."""
    looks: bool = False
    """Whether its end in time is only a look whether something happened unnoticed."""
    marks: str | None = None
    """The dict in which the jobs that it waits for report; what is there when the job falls asleep wakes it."""


class Suspended(BaseException):
    """Ends a handler whose job sleeps: nothing went wrong, so no `except Exception` is to catch it."""

    def __init__(self, waits: list[Wait], anew: Raw | None = None) -> None:
        super().__init__(", ".join(wait.what for wait in waits))
        self.waits = waits
        self.anew = anew
        """The arguments with which the job begins again, if it does."""
