"""The ledger record of an effect that must happen once."""

from typing import Any, Final, Literal

from msgspec import Raw, Struct, json

from holdfast.codec import Codec, Limits, check_value_size
from holdfast.errors import ResultNotKept
from holdfast.records import MaybeRaw, Message
from holdfast.workers.handlers.outcomes import shown


class LedgerEntry(Struct, frozen=True, omit_defaults=True):
    """That something was begun, or done; `by` is the claim or lease under which that was, as text."""

    state: Literal["started", "done"]
    by: str = ""
    holder: str = ""
    result: MaybeRaw = None
    missing: str | None = None
    """Why there is no result although it was done."""

    def decoded(self, codec: Codec, what: str) -> Any:
        """The result; raises `ResultNotKept` where it was done and could not be kept."""
        if self.missing is not None:
            raise ResultNotKept(f"{what} was done, but its result could not be kept: {self.missing}", self.missing)
        return None if self.result is None else codec.decode(self.result)

    @property
    def raw(self) -> Raw:
        """The entry as it is stored."""
        return Raw(json.encode(self))


class OnceRecord(Struct, frozen=True):
    """What is known about something that is to happen once.

    `running`: it is being done at this moment. `done`: it happened, with this result. `unknown`: its caller died, so perhaps it
    happened, perhaps not.
    """

    state: Literal["running", "unknown", "done"]
    holder: str
    result: Any = None
    missing: str | None = None
    """Why there is no result although it is done: it could not be encoded, or was too large."""


def done_entry(by: str, holder: str, result: Any, codec: Codec, limits: Limits) -> LedgerEntry:
    """The entry of something that was done: with its result, or with the reason why that cannot be kept.

    What was done must not be repeated because of its result, so nothing is raised.
    """
    try:
        done = LedgerEntry("done", by, holder, codec.encode(result))
        check_value_size(done.raw, limits)
    except Exception as error:  # noqa: BLE001 - codecs and results are foreign code
        return LedgerEntry("done", by, holder, missing=shown(error))
    return done


ENTRY_BYTES: Final = 4_096
"""More than an entry takes beside its result."""


def kept_result(message: Message, result: Any, codec: Codec, limits: Limits) -> tuple[MaybeRaw, str | None]:
    """The result of a job as it is kept, or why it cannot be."""
    try:
        raw = codec.encode(result)
    except Exception as error:  # noqa: BLE001 - as above
        return None, shown(error)
    if len(raw) + ENTRY_BYTES <= limits.value_bytes:
        return raw, None
    done = done_entry(message.receipt.claim_id, message.holder or "", result, codec, limits)
    return done.result, done.missing


def entry_of(raw: Raw) -> LedgerEntry:
    """An entry as it was stored."""
    return json.decode(raw, type=LedgerEntry)
