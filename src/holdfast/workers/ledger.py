"""What is remembered of something that must happen once."""

from typing import Any, Literal

from msgspec import Raw, Struct, json

from holdfast.records import MaybeRaw


class LedgerEntry(Struct, frozen=True, omit_defaults=True):
    """That something was begun, or done; `by` is the claim or lease under which that was, as text."""

    state: Literal["started", "done"]
    by: str = ""
    holder: str = ""
    result: MaybeRaw = None

    @property
    def raw(self) -> Raw:
        """The entry as it is stored."""
        return Raw(json.encode(self))


class OnceRecord(Struct, frozen=True):
    """What is known about something that is to happen once.

    `running`: somebody does it at this moment. `done`: it happened, with this result. `unknown`: whoever did it died, so perhaps it
    happened, perhaps not.
    """

    state: Literal["running", "unknown", "done"]
    holder: str
    result: Any = None


def entry_of(raw: Raw) -> LedgerEntry:
    """An entry as it was stored."""
    return json.decode(raw, type=LedgerEntry)
