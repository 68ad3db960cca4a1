"""The stored records: messages, entries, leases and events, and the transitions of a message.

Every moment (`position`, `until`, `created_at`, …) is a whole number of microseconds of the store's clock. Values are JSON text, as the
codec made it; nothing here looks inside one.
"""

import hashlib
from typing import TYPE_CHECKING, ClassVar, Final, Literal
from urllib.parse import quote, unquote

from msgspec import Raw, Struct
from msgspec.structs import replace

from holdfast.codec.fields import TOKEN, Field, check_fields, name_text
from holdfast.codec.limits import SHORT
from holdfast.codec.metadata import with_letter

State = Literal["ready", "leased", "dead", "buffered", "done"]
ReturnTo = Literal["back", "place", "front"]
How = Literal["released", "failed", "expired", "buried", "late"]

if TYPE_CHECKING:
    MaybeRaw = Raw | None
else:
    # msgspec decodes no union with Raw; what is left out on the wire is None here.
    MaybeRaw = Raw

NEVER = 2**62
"""The end of a lease that has none."""
NO_VALUE = Raw(b"")
"""Stands in a message that was read without its value, and in an entry that was deleted."""
UPDATED: tuple[str, ...] = ("metadata", "labels")
"""What a put that updates a message changes besides its value."""
HISTORY = 20
"""How many endings a message remembers; older ones are only counted."""
ERROR_CHARACTERS = 4_000
"""Longer error texts are cut before they are kept."""


def moment_in(seconds: float) -> int:
    """How far ahead a moment `seconds` from now lies."""
    return round(seconds * 1_000_000)


def seconds_in(span: int) -> float:
    """How many seconds lie between two moments `span` apart."""
    return span / 1_000_000


def end_of(now: int, lease_s: float | None) -> int:
    """When a lease taken now ends."""
    return NEVER if lease_s is None else now + moment_in(lease_s)


class Ending(Struct, frozen=True, gc=False, array_like=True):
    """How one claim on a message ended, when it was not done."""

    holder: str
    token: int
    since: int
    until: int
    how: How
    error: str | None = None


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of a queue, in the state the store last gave it."""

    queue: str
    id: str
    value: Raw
    n: int = 0
    """Orders messages of one position; given by the store when it adds the message."""
    key: str | None = None
    priority: int = 0
    position: int = 0
    """Its place in the line: the moment it became, or becomes, due."""
    state: State = "ready"
    attempts: int = 0
    """How often it was handed out."""
    failures: int = 0
    """How often that ended in a failure or an expiry: what the budget counts."""
    max_attempts: int | None = None
    dead_letter: str | None = None
    start_by: int | None = None
    created_at: int = 0
    holder: str = ""
    token: int = 0
    since: int = 0
    until: int = 0
    expired_to: ReturnTo = "place"
    dead_at: int | None = None
    last_error: str | None = None
    endings: int = 0
    history: tuple[Ending, ...] = ()
    metadata: MaybeRaw = None
    labels: tuple[str, ...] = ()
    group: str | None = None
    lane: str | None = None
    """The lane in which it stands: its group, or "" without one. None in a queue that has one line for all."""
    level: int = 0
    rank: int | None = None
    """Its place in the lane, behind those of a higher level; None while it is out of line because it is not due."""
    tied: int = 0
    """What the end of its claim has to do, as bits that `records.policies` names."""
    ended_at: int | None = None
    trace: str | None = None

    @property
    def receipt(self) -> "Receipt":
        return Receipt(self.queue, self.id, self.token)

    @property
    def size_bytes(self) -> int:
        """How much of an answer it takes."""
        size = len(self.value) + (len(self.metadata) if self.metadata is not None else 0)
        if not self.endings:
            return size
        return size + len(self.last_error or "") + sum(len(ending.error or "") for ending in self.history)

    @property
    def order(self) -> tuple[int, int, int]:
        """Sorts messages into the order in which they are claimed."""
        return (-self.priority, self.position, self.n)

    def has_label(self, label: str) -> bool:
        return label in self.labels

    def held_at(self, now: int) -> bool:
        return self.state == "leased" and self.until > now

    def is_late(self, now: int) -> bool:
        """Whether it had to be started by now and never was."""
        return self.start_by is not None and self.start_by <= now and self.attempts == 0

    @property
    def overdue_since(self) -> int:
        """Since when time has overtaken it: its lease has ended, or it is due, or late."""
        if self.state == "leased":
            return self.until
        return self.position if self.lane is not None and self.rank is None else self.start_by or 0

    def leased(self, holder: str, token: int, now: int, until: int, expired_to: ReturnTo, *, tied: int = 0) -> "Message":
        return replace(
            self,
            state="leased",
            holder=holder,
            token=token,
            since=now,
            until=until,
            expired_to=expired_to,
            attempts=self.attempts + 1,
            tied=tied,
        )

    def returned(self, position: int, *, failed: bool, ending: Ending) -> "Message":
        """Back in line, at `position`."""
        return replace(self, state="ready", position=position, tied=0, failures=self.failures + failed, **self._after(ending))

    def buried(self, now: int, *, failed: bool, ending: Ending) -> "Message":
        """Dead, and kept where it is for inspection."""
        return replace(self, state="dead", dead_at=now, tied=0, failures=self.failures + failed, **self._after(ending))

    def dead_lettered(self, now: int, to: str, wall_at: int, *, failed: bool, ending: Ending) -> "Message":
        """Moved to the queue `to` as fresh work, with metadata that says where it came from and why."""
        report = {
            "queue": self.queue,
            "attempts": self.attempts,
            "failures": self.failures + failed,
            "error": self._after(ending)["last_error"],
            "at": wall_at / 1_000_000,
        }
        if isinstance(self.key, str):  # By reference it may be anything.
            report["key"] = self.key
        return Message(
            queue=to,
            id=self.id,
            value=self.value,
            n=self.n,
            priority=self.priority,
            position=now,
            metadata=with_letter(self.metadata, report, self.id),
            labels=self.labels,
            group=self.group,
            created_at=self.created_at,
        )

    def promoted(self) -> "Message":
        """A buffered copy whose turn has come."""
        return replace(self, state="ready")

    def postponed(self, position: int, at_latest_s: float | None) -> "Message":
        """Due at another moment, but not later than so long after it was put; the time in which it has to be started moves along."""
        if at_latest_s is not None:
            position = min(position, self.created_at + moment_in(at_latest_s))
        start_by = None if self.start_by is None else self.start_by + position - self.position
        return replace(self, position=position, start_by=start_by)

    def valued(self, value: Raw) -> "Message":
        return replace(self, value=value)

    def redriven(self, position: int, queue: str) -> "Message":
        """A dead letter given another chance: the same id, a fresh budget."""
        return replace(self, queue=queue, state="ready", position=position, failures=0, dead_at=None, ended_at=None, tied=0)

    def done(self, now: int) -> "Message":
        """Done, and kept for a while."""
        return replace(self, state="done", ended_at=now, lane=None, level=0, rank=None, tied=0)

    def ending(self, now: int, how: How, error: str | None = None) -> Ending:
        return Ending(self.holder, self.token, self.since, now, how, error[:ERROR_CHARACTERS] if error else error)

    def _after(self, ending: Ending) -> dict[str, object]:
        return {
            "history": (*self.history, ending)[-HISTORY:],
            "endings": self.endings + 1,
            "last_error": ending.error if ending.error is not None else self.last_error,
        }


LAST_TOKEN: Final = TOKEN.most


class Receipt(Struct, frozen=True, gc=False, array_like=True):
    """Names one claim: no other claim on the message, earlier or later, has the same."""

    checked: ClassVar[tuple[Field, ...]] = (name_text("queue"), name_text("id"), TOKEN)

    queue: str
    id: str
    token: int

    def __post_init__(self) -> None:
        # Every settling pays for this, so what is plain is passed without a call.
        queue, message_id, token = self.queue, self.id, self.token
        if not (
            (type(token) is int and 0 <= token <= LAST_TOKEN)
            and (type(queue) is str and len(queue) <= SHORT and queue.isprintable())
            and (type(message_id) is str and len(message_id) <= SHORT and message_id.isprintable())
        ):
            check_fields(self, self.checked)

    @property
    def claim_id(self) -> str:
        return f"{self.token}/{quote(self.queue, safe='')}/{quote(self.id, safe='')}"

    @classmethod
    def parse(cls, claim_id: str) -> "Receipt":
        token, _, rest = claim_id.partition("/")
        queue, _, message_id = rest.partition("/")
        if not (token.isascii() and token.isdigit() and queue and message_id):
            message = f"{claim_id!r} is not a claim id: pass the claim, or the `claim_id` it carries"
            raise ValueError(message)
        return cls(unquote(queue), unquote(message_id), int(token))


class Entry(Struct, frozen=True, gc=False, omit_defaults=True):
    """One key of a dict."""

    dict: str
    key: str
    value: Raw
    revision: int
    fence: int = 0
    """The highest token that wrote it under a fence."""
    expires_at: int | None = None

    @property
    def size_bytes(self) -> int:
        """How much of an answer it takes."""
        return len(self.value)

    def is_there(self, now: int) -> bool:
        """Whether it is neither deleted nor past its time."""
        return self.value is not NO_VALUE and (self.expires_at is None or self.expires_at > now)

    @property
    def is_gone(self) -> bool:
        """Whether there is nothing to remember: neither a value nor a fence."""
        return self.value is NO_VALUE and not self.fence

    def deleted(self) -> "Entry":
        """What stays known of its key: the fence."""
        return Entry(self.dict, self.key, NO_VALUE, 0, self.fence)


class Lease(Struct, frozen=True, gc=False, omit_defaults=True):
    """The right to a name until a moment: of a dict's key, or (with no dict) of any name."""

    dict: str | None
    key: str
    holder: str
    lease_id: str
    token: int
    since: int
    until: int

    def held_at(self, now: int) -> bool:
        return self.until > now

    @property
    def is_gone(self) -> bool:
        return not self.lease_id

    def released(self) -> "Lease":
        """Given back: no id names it any more."""
        return replace(self, lease_id="")

    def is_under(self, lease_id: str) -> bool:
        """Whether it was taken under this id, also where only others' leases are seen and their ids are not told."""
        return self.lease_id in (lease_id, hidden_id(lease_id))

    def without_id(self) -> "Lease":
        """The lease as others may see it: the id, which renews and releases it, cannot be worked out from what stands for it."""
        return replace(self, lease_id=hidden_id(self.lease_id))


def hidden_id(lease_id: str) -> str:
    """What stands for the id of another holder's lease."""
    return f"hidden-{hashlib.sha256(lease_id.encode()).hexdigest()[:32]}"


class Event(Struct, frozen=True, gc=False, omit_defaults=True):
    """One line of the log that watches read."""

    index: int
    topic: str
    event: str
    data: Raw
    at: int
    number: int = 0
    """The number it was written with, where it was committed so late that it has another place in the log."""

    @property
    def size_bytes(self) -> int:
        """How much of an answer it takes."""
        return len(self.data)

    @property
    def token(self) -> int:
        """The token or the revision that it describes."""
        return self.number or self.index
