"""What is remembered of something that must happen once."""

from typing import Literal

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


def entry_of(raw: Raw) -> LedgerEntry:
    """An entry as it was stored."""
    return json.decode(raw, type=LedgerEntry)
