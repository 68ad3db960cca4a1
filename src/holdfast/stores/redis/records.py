"""Records as the scripts store and return them, in msgpack: missing fields have their defaults, and false stands for null."""

from collections.abc import Callable

from msgspec import Raw, Struct

from holdfast.codec.metadata import with_letter
from holdfast.records import Entry, Lease, Message, ReturnTo, State


class Letter(Struct, frozen=True, gc=False):
    """Where a dead letter comes from and why; it becomes part of the metadata when it is read."""

    queue: str
    attempts: int
    failures: int
    at: int
    error: str | None = None
    key: str | None = None

    def report(self) -> dict[str, object]:
        told: dict[str, object] = {"queue": self.queue, "attempts": self.attempts, "failures": self.failures, "error": self.error}
        told["at"] = self.at / 1_000_000
        return told if self.key is None else {**told, "key": self.key}


class KeptClaim(Struct, frozen=True, gc=False):
    """What a first claim added to a message."""

    token: int
    until: int
    holder: str
    since: int
    state: State
    attempts: int
    expired_to: ReturnTo = "place"
    tied: int = 0


class KeptMessage(Message, frozen=True, gc=False, kw_only=True):
    """A message, perhaps without its id, and perhaps with its value: what it adds to `Message`, or keeps otherwise."""

    n: int
    position: int
    created_at: int
    queue: str = ""
    id: str = ""
    value: str = ""  # type: ignore[assignment]  # text, because the scripts' msgpack knows no bytes
    metadata: str | None = None  # type: ignore[assignment]  # as above
    letter: Letter | None = None


_AS_GIVEN = ("queue", "id", "value", "metadata")
"""The fields of a message that are not read from the record as they are."""


def _compiled() -> Callable[..., Message]:
    """A function that makes a message of these, and of each other field of the record or of the claim.

    Compiled from the names of the fields, as dataclasses do: a loop over them takes twice as long, for every message that is claimed.
    """
    of = dict.fromkeys(KeptClaim.__struct_fields__, "claim.") | dict.fromkeys(_AS_GIVEN, "")
    fields = [of.get(name, "kept.") + name for name in Message.__struct_fields__]
    text = f"lambda kept, claim, {', '.join(_AS_GIVEN)}: Message({', '.join(fields)})"
    made: Callable[..., Message] = eval(text, {"Message": Message})  # noqa: S307 - of the names of our own fields
    return made


_make_message = _compiled()


def message_of(queue: str, message_id: str, value: str, kept: KeptMessage, claim: KeptClaim | KeptMessage) -> Message:
    """The message in a record, under the claim that it is under."""
    metadata = None if kept.metadata is None else Raw(kept.metadata)
    if kept.letter is not None:
        metadata = with_letter(metadata, kept.letter.report(), message_id)
    return _make_message(kept, claim, queue, message_id, Raw(value), metadata)


class KeptEntry(Struct, frozen=True, gc=False):
    """An entry of a dict."""

    key: str
    value: str
    revision: int
    fence: int = 0
    expires_at: int | None = None

    def entry(self, name: str) -> Entry:
        return Entry(name, self.key, Raw(self.value), self.revision, self.fence, self.expires_at)


class KeptLease(Struct, frozen=True, gc=False):
    """A lease, perhaps without what it is on."""

    holder: str
    lease_id: str
    token: int
    since: int
    until: int
    key: str = ""
    dict: str | None = None

    def lease(self) -> Lease:
        return self.on(self.dict, self.key)

    def on(self, name: str | None, key: str) -> Lease:
        """The lease on a key of a dict, or with no dict on a name of its own."""
        return Lease(name, key, self.holder, self.lease_id, self.token, self.since, self.until)
