"""The transaction protocol of embedded stores, which commands run in.

Methods take and give whole sets, so that a batch costs a few statements and never one a row. A command first reads (`check`), then
writes (`write`); a store that cannot roll back relies on that order.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from msgspec import UNSET, Raw, Struct, UnsetType, json

from holdfast.codec import fields
from holdfast.codec.fields import Field, check_fields
from holdfast.commands.hints import Hints
from holdfast.commands.stats import Tally
from holdfast.records import Entry, Event, Lease, Message, ReturnTo, State, moment_in
from holdfast.records.policies import Kind, Lane, LaneOrder, Settings
from holdfast.records.shares import Share, ShareOrder

if TYPE_CHECKING:
    from holdfast.commands.allowance import Allowance
    from holdfast.commands.copying import Copying

Cursor = tuple[int | str, ...]

Record = Message | Settings | Lane | Entry | Lease | Share


class Draft(Struct, frozen=True, gc=False):
    """An event before it has its number."""

    topic: str
    event: str
    facts: Mapping[str, object]

    @property
    def data(self) -> Raw:
        """The facts as text, for stores that keep text."""
        return Raw(json.encode(self.facts))


class Filter(Struct, frozen=True, gc=False, omit_defaults=True):
    """Which messages of one state are meant; what is left out does not narrow."""

    checked: ClassVar[tuple[Field, ...]] = (
        *(fields.OLDER_THAN_S, fields.ERROR_CONTAINS, fields.KEY_PREFIX, fields.LABEL, fields.GROUP),
        *(fields.NEWER_THAN_S, fields.ERROR_CLASS, fields.VALUE_CONTAINS),
    )

    older_than_s: float | None = None
    """Since its burial for a dead letter, since it was put for any other."""
    error_contains: str | None = None
    key_prefix: str | None = None
    label: str | None = None
    group: str | None = None
    """"" stands for messages without a group."""
    newer_than_s: float | None = None
    """Since the same moment as `older_than_s`."""
    error_class: str | None = None
    """The last error's text up to the first colon."""
    value_contains: str | None = None
    """A part of the value's JSON text."""

    def __post_init__(self) -> None:
        check_fields(self, self.checked)

    def matches(self, message: Message, now: int) -> bool:
        """Whether it lets the message through, its value apart."""
        since = message.dead_at if message.state == "dead" and message.dead_at is not None else message.created_at
        return (
            (self.older_than_s is None or since < now - moment_in(self.older_than_s))
            and (self.newer_than_s is None or since >= now - moment_in(self.newer_than_s))
            and (self.key_prefix is None or (isinstance(message.key, str) and message.key.startswith(self.key_prefix)))
            and (self.error_contains is None or self.error_contains in (message.last_error or ""))
            and (self.error_class is None or self.error_class == (message.last_error or "").partition(":")[0])
            and (self.label is None or message.has_label(self.label))
            and (self.group is None or self.group == (message.group or ""))
        )

    def matches_value(self, value: object) -> bool:
        """Whether it lets a value through: a memory store may hold one that is not JSON."""
        return self.value_contains is None or (isinstance(value, Raw) and self.value_contains.encode() in bytes(value))


class Fenced(Struct, frozen=True, gc=False, array_like=True):
    """The highest fence that wrote a key, deleted or not."""

    dict: str
    key: str
    fence: int


class Line(Struct, frozen=True, gc=False):
    """The beginning of a queue's line, and what time has overtaken."""

    settings: Settings | None
    heads: list[Message]
    """The first due, ready messages in claim order; late ones are passed over."""
    overdue: list[Message]
    """Without values: leased messages whose lease has ended, ready ones that are late, and ready ones out of line that are due; the longest
    overdue first."""
    next_due: int | None = None
    """Where there are no heads: the first moment after now at which time alone makes a message claimable, or changes a lane."""


class OpenLane(Struct, frozen=True, gc=False):
    """A lane that a claim may take from, and what stands in it."""

    lane: Lane
    first: Message | None
    """With its value, unless that is large."""
    next_at: int | None
    """The position of the message behind it."""


class OpenLanes(Struct, frozen=True, gc=False):
    """The open lanes of a queue, in the order of their turns: as many as were asked for, or as can fill an answer."""

    is_overdue: bool
    """Whether time may have overtaken a message or a lane."""
    lanes: list[OpenLane]


class Stretch(Struct, frozen=True, gc=False):
    """A part of a topic's log, behind a number."""

    events: list[Event]
    """As many as were asked for and the allowance takes, none up to the floor."""
    upto: int
    """How far the log was read."""
    floor: int
    """The highest event number of the topic that was pruned, 0 for none."""
    was_skipped: bool = False
    """Whether numbering leapt over the number: only a history that was lost by restoring a backup can have given it out."""


class Outdated(Struct, frozen=True, gc=False):
    """What remains to be removed, up to a limit each."""

    entries: list[Entry]
    """Of any dict, past their time."""
    queues: list[str]
    """The first queues, by name, that keep messages which are done."""


class QueueTransaction(Protocol):
    """The part of a transaction that queues use."""

    def messages(self, queue: str, ids: Collection[str], *, values: bool = False) -> Iterable[Message]:
        """The messages under these ids, in the order asked, in whatever state; with their values they are read as they are asked for."""
        ...

    def keyed(self, queue: str, keys: Collection[str]) -> list[Message]:
        """The ready, leased and buffered messages under these keys, without values."""
        ...

    def line(self, queue: str, limit: int, overdue_limit: int) -> "Line":
        """The queue as a claim sees it; no more heads than one answer can bring."""
        ...

    def head_position(self, queue: str, priority: int) -> int | None:
        """Where the line of one priority begins; late messages may be passed over."""
        ...

    def browse(self, queue: str, state: State, after: Cursor | None, limit: int, *, values: bool = True) -> Iterable[Message]:
        """Messages of one state, read as they are asked for: ready as claimed, leased by lease end, dead by burial, buffered by key.

        Without `values` a store may leave out those of its choice.
        """
        ...

    def tally(self, queue: str) -> Tally: ...

    def add(self, messages: Sequence[Message]) -> None:
        """Add new messages: as they are, with their own `n`, or where that is 0 with the next numbers, in this order."""
        ...

    def lease(self, messages: Sequence[Message], holder: str, token: int, until: int, expired_to: ReturnTo) -> None:
        """Lease ready messages from now until `until`."""
        ...

    def extend(self, messages: Sequence[Message], until: int) -> None: ...

    def remove(self, messages: Sequence[Message]) -> None: ...

    def revalue(self, messages: Sequence[Message]) -> None:
        """Save value, metadata and extra fields, those behind it, of these messages, found by `n`."""
        ...

    def lanes(self, queue: str, names: Collection[str]) -> dict[str, Lane]:
        """What is known of these lanes."""
        ...

    def find_lanes(self, queue: str, by: LaneOrder, limit: int, prefix: str = "", after: str | None = None) -> list[Lane]:
        """Lanes by `wakes`: those whose moment has come; by `name`: all with a prefix, behind a name; by `turn`: those that are open."""
        ...

    def open_lanes(self, queue: str, limit: int) -> OpenLanes:
        """Everything that a claim of so many messages has to know, as a rule."""
        ...

    def lane_heads(self, queue: str, counts: Mapping[str, int]) -> dict[str, list[Message]]:
        """The first so many messages in line of each lane, without values; late ones are passed over."""
        ...


class DictTransaction(Protocol):
    """The part of a transaction that dicts and leases use."""

    def entries(self, name: str, keys: Collection[str]) -> dict[str, Entry]:
        """What is known of these keys: entries, also past their time, and for the fences of deleted keys entries without a value."""
        ...

    def scan(self, name: str, prefix: str, after: str | None, limit: int) -> Iterator[Entry]:
        """Entries that are there, whose key text begins with `prefix`, in its order, behind `after`, read as they are asked for."""
        ...

    def length(self, name: str) -> int:
        """How many entries are there."""
        ...

    def fenced(self, after: tuple[str, str]) -> Iterator[Fenced]:
        """The fences of all keys that have one, deleted or not, dict by dict, behind a dict and key, read as they are asked for."""
        ...

    def leases(self, keys: Collection[tuple[str | None, str]]) -> dict[tuple[str | None, str], Lease]:
        """The last lease of each (dict, key), ended or not; of a name with capacity what stands for it."""
        ...

    def leases_of(self, name: str | UnsetType | None = UNSET, prefix: str = "", after: str | None = None) -> Iterator[Lease]:
        """The last leases on keys of a dict or, with None, on names of their own, by key, behind `after`; without a name on all there is.

        They are read as they are asked for.
        """
        ...

    def shares(self, key: str, lease_ids: Collection[str]) -> dict[str, Share]:
        """The grants and places in line under these ids, ended or not, of a name with capacity."""
        ...

    def find_shares(self, key: str, by: ShareOrder, limit: int, after: int = 0) -> Iterable[Share]:
        """Grants, or tickets, that end after a moment, by end and id; by `line`: tickets behind a place, by place, ended or not."""
        ...


class EventTransaction(Protocol):
    """The part of a transaction that the log of events and the answers to repeated commands use."""

    def append(self, drafts: Sequence[Draft]) -> int:
        """Write events under consecutive numbers; return the first. These numbers are the tokens and revisions."""
        ...

    def was_skipped(self, number: int) -> bool:
        """Whether numbering leapt over it: who has it got it from data that a backup has replaced since."""
        ...

    def latest(self) -> int:
        """The newest event's number, 0 before the first."""
        ...

    def changes(self, topic: str, after: int, limit: int) -> Stretch: ...

    def prune(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        """Drop up to `limit` events beyond the newest `keep` of a topic or older than `older_than`, and as many answers.

        None of them is younger than `never_after`.
        """
        ...

    def recall(self, command_id: str) -> bytes | None: ...

    def record(self, command_id: str, note: bytes) -> None: ...


class CopyTransaction(Protocol):
    """The part of a transaction that moving to another store uses."""

    def next_n(self) -> int:
        """A number above every message's `n`, which the next message that is added will have or exceed."""
        ...

    def raise_numbers(self, number: int, n: int, *, lost: bool) -> None:
        """Go on above `number` with events and above `n` with messages; what was told up to now counts as pruned, in every topic."""
        ...

    def copying(self) -> "Copying | None":
        """The copy that this store is the target of."""
        ...

    def save_copying(self, copying: "Copying | None") -> None: ...

    def seal(self, to: str, target_at: int | None) -> None:
        """Let every later transaction, in whatever process, raise `StoreMoved` with this URL; keep both for undoing the copy."""
        ...


class Transaction(QueueTransaction, DictTransaction, EventTransaction, CopyTransaction, Protocol):
    """One atomic step on an embedded store."""

    now: int
    """The store's clock when the step began."""
    allowance: "Allowance"
    """What the answer to the command at hand may still bring."""
    hints: Hints
    """Whom to wake once the step is durable."""
    reserved: dict[str, int]
    """Room that earlier commands of the same step will use up, by queue."""

    @property
    def wall_offset(self) -> int:
        """What to add to a moment of the store to get one that people know."""
        ...

    def settings(self, kind: Kind, name: str) -> Settings | None: ...

    def save(self, records: Sequence[Record]) -> None:
        """Save records in place of what stood under their keys, messages under their `n`; nothing is kept of those that are gone.

        Of a message everything but what `revalue` saves.
        """
        ...

    def clear(self, kind: Kind, name: str, *, drop: bool) -> int:
        """Remove every message of a queue, or every entry of a dict, whose fences stay, and with `drop` the settings.

        Answer how many were there.
        """
        ...

    def names(self, kind: Kind, prefix: str, after: str | None, limit: int) -> list[Settings]: ...

    def outdated(self, limit: int, *, done: bool) -> Outdated:
        """What has ended by time and is still there; finished messages only with `done`."""
        ...
