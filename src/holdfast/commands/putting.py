"""Putting messages into a queue, and the policies for a key that is already there."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Final, Literal, Self

from msgspec import Raw, Struct
from msgspec.structs import replace

from holdfast.codec import Limits, check_batch, check_name, check_value_size
from holdfast.codec.fields import AT, DELAY_S, LABELS, MAX_ATTEMPTS, METADATA, PRIORITY, START_WITHIN_S, Field, check_fields
from holdfast.codec.limits import SHORT
from holdfast.codec.metadata import readable_metadata
from holdfast.commands.argument_checks import check_choice, check_key, check_queue
from holdfast.commands.command import Command, Resource
from holdfast.commands.endings import announce, create_queue, event, promote, resize
from holdfast.commands.names import Renamer, Verb, all_renamed, renamed
from holdfast.commands.plain import are_plain, is_plain
from holdfast.commands.refusal_errors import key_in_flight, queue_full
from holdfast.commands.transaction import Transaction
from holdfast.records import MaybeRaw, Message, Settings, moment_in

IfReady = Literal["keep", "update", "reject"]
IfLeased = Literal["keep", "update", "reject", "buffer"]

NO_DELAY_S: Final = 0.0
NO_PRIORITY: Final = 0
NO_LABELS: Final = ()
"""What is left out is these very objects, and needs no check."""

POLICIES_READY = ("update", "keep", "reject")
POLICIES_LEASED = ("buffer", "update", "keep", "reject")


class Item(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One message to put."""

    checked: ClassVar[tuple[Field, ...]] = (DELAY_S, AT, PRIORITY, MAX_ATTEMPTS, START_WITHIN_S, METADATA, LABELS)
    plain_fields: ClassVar[tuple[str, ...]] = (
        *(
            "id",
            "value",
            "if_ready",
            "if_leased",
            "delay_s",
            "at",
            "priority",
            "max_attempts",
            "dead_letter",
            "start_within_s",
            "metadata",
            "labels",
        ),
    )
    """All but the key: without one, the policies for keys mean nothing."""

    id: str
    value: Raw
    key: str | None = None
    if_ready: IfReady = "update"
    if_leased: IfLeased = "buffer"
    delay_s: float = NO_DELAY_S
    at: int | None = None
    """A moment of the wall clock, in microseconds, before which it is not due."""
    priority: int = NO_PRIORITY
    max_attempts: int | None = None
    dead_letter: str | None = None
    start_within_s: float | None = None
    metadata: MaybeRaw = None
    labels: tuple[str, ...] = NO_LABELS

    def __post_init__(self) -> None:
        # Every put pays for this, so what is short, plain or left out is passed without a call.
        message_id, key = self.id, self.key
        if type(message_id) is not str or not 0 < len(message_id) <= SHORT or not message_id.isprintable():
            check_name(message_id, "message id")
        if key is not None and (type(key) is not str or not 0 < len(key) <= SHORT or not key.isprintable()):
            check_key(key)
        if self.if_ready != "update" or self.if_leased != "buffer":
            self._check_policies()
        if self.dead_letter is not None:
            check_name(self.dead_letter, "dead-letter queue")
        if not (
            self.delay_s is NO_DELAY_S
            and self.priority is NO_PRIORITY
            and self.max_attempts is None
            and self.metadata is None
            and self.labels is NO_LABELS
            and self.at is None
            and self.start_within_s is None
        ):
            check_fields(self, self.checked)

    def _check_policies(self) -> None:
        if self.if_ready not in POLICIES_READY or self.if_leased not in POLICIES_LEASED:
            check_choice(self.if_ready, POLICIES_READY, "if_ready")
            check_choice(self.if_leased, POLICIES_LEASED, "if_leased")

    def message(self, queue: str, now: int, wall_offset: int, n: int = 0) -> Message:
        """The new message that it puts."""
        position = now + moment_in(self.delay_s) if self.delay_s else now
        if self.at is not None:
            position = max(position, self.at - wall_offset)
        start_by = None if self.start_within_s is None else position + moment_in(self.start_within_s)
        return Message(queue, self.id, self.value, *_in_order(_DEFAULTS + _kept(self) + (n, position, start_by, now)))


KEPT: tuple[str, ...] = tuple(name for name in Item.__struct_fields__ if name in Message.__struct_fields__ and name not in ("id", "value"))
"""The options of a put that a message keeps as they are."""
UPDATED: tuple[str, ...] = ("metadata", "labels")
"""What a put that updates a message changes besides its value."""
_kept: Callable[[Item], tuple[Any, ...]] = attrgetter(*KEPT)
_DEFAULTS: Final = Message.__struct_defaults__


def _place(name: str, place: int) -> int:
    """Where a field of a new message stands: behind the defaults of all, or among them."""
    given = (*KEPT, "n", "position", "start_by", "created_at")
    return len(_DEFAULTS) + given.index(name) if name in given else place


# By position, since keywords cost three times as much.
_in_order = itemgetter(*(_place(name, place) for place, name in enumerate(Message.__struct_fields__[3:])))


def item_of(message: Message) -> Item:
    """The item that puts the message again, unless there is newer work of its key."""
    kept = {name: getattr(message, name) for name in KEPT}
    if message.metadata is not None:
        kept["metadata"] = readable_metadata(message.metadata, message.queue, message.id)
    return Item(message.id, message.value, if_ready="keep", if_leased="keep", **kept)


class Puts(Struct, frozen=True, gc=False):
    """Under which ids the messages are, and which of them are new."""

    ids: list[str]
    created: list[bool]


class Put(Command[Puts], frozen=True):
    """Add messages to a queue, all or none."""

    verb: ClassVar[Verb] = "put"
    answer_type: ClassVar[Any] = Puts

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "queue", "items")

    queue: str
    items: Sequence[Item]

    def __post_init__(self) -> None:
        check_queue(self.queue)
        for item in self.items:
            if item.dead_letter == self.queue:
                message = f"queue {self.queue!r} cannot be its own dead-letter queue: name another"
                raise ValueError(message)

    def named(self, names: Renamer) -> Self:
        items = [item if item.dead_letter is None else renamed(item, dead_letter=names.later(item.dead_letter)) for item in self.items]
        return renamed(self, queue=names.object("queue", self.queue, self.verb), items=all_renamed(self.items, items))

    def measure(self, limits: Limits) -> int:
        size = 0
        for item in self.items:
            size += len(item.value)
            if item.metadata is not None:
                size += len(item.metadata)
        if size > limits.value_bytes:  # Seldom: only then one of them can be too large.
            for item in self.items:
                check_value_size(item.value, limits)
                check_value_size(item.metadata or b"", limits, "metadata")
        return check_batch(len(self.items), size, limits)

    def plain(self, *also: str) -> bool:
        """Whether it puts messages that concern no others: none has a key, and their ids differ. `also` names fields of an item."""
        items = self.items
        if len(items) == 1:
            return is_plain(items[0], also) and is_plain(self, ())
        return bool(items) and are_plain(items, also) and len({item.id for item in items}) == len(items) and is_plain(self, ())

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield ("queue", self.queue), False
        for item in self.items:
            yield ("message", self.queue, item.id), True
            if item.key is not None:
                yield ("line", self.queue), False
                yield ("key", self.queue, item.key), True

    def check(self, tx: Transaction) -> "Placement":
        placement = Placement(tx.settings("queue", self.queue), tx.now)
        placement.look_up(tx, self.queue, self.items)
        for item in self.items:
            placement.place(self.queue, item, tx.wall_offset)
        placement.check_room(tx, self.queue)
        return placement

    def write(self, tx: Transaction, plan: "Placement") -> Puts:
        if plan.settings is None:
            create_queue(tx, self.queue)
        added, updated = list(plan.added.values()), list(plan.updated.values())
        drafts = [event(self.queue, "expired", plan.late, started=False)] if plan.late else []
        if added or updated:
            drafts.append(event(self.queue, "put", added, **told_updated(updated)))
        if drafts:
            tx.append(drafts)
        if plan.late:
            tx.remove(plan.late)
            resize(tx, self.queue, -len(plan.late))
        tx.add(added)
        if updated:
            tx.revalue(updated)
        if plan.is_bounded:
            resize(tx, self.queue, plan.ready_count)
        announce(tx, [message for message in added if message.state == "ready"])
        # The message that a copy waits behind may be settled by the same step.
        promote(tx, self.queue, [message for message in added if message.state == "buffered"])
        return Puts(plan.ids, plan.created)


def told_updated(messages: Sequence[Message]) -> dict[str, list[Any]]:
    """What the event of a put tells of messages that were there and got a new value: they have keys, all of them."""
    if not messages:
        return {}
    return {"updated": [message.id for message in messages], "updated_keys": [message.key for message in messages]}


class Placement(Struct):
    """Where each item of a put goes, worked out one after the other as if each were put alone."""

    settings: Settings | None
    now: int
    ids: list[str] = []
    created: list[bool] = []
    added: dict[str, Message] = {}
    updated: dict[str, Message] = {}
    late: list[Message] = []
    """Under these keys, and too late to be started: they swallow no new work."""
    taken: set[str] = set()
    live: dict[str | None, Message] = {}
    copies: dict[str | None, Message] = {}

    @property
    def is_bounded(self) -> bool:
        return self.settings is not None and self.settings.maxsize is not None

    @property
    def ready_count(self) -> int:
        return sum(message.state == "ready" for message in self.added.values())

    def look_up(self, tx: Transaction, queue: str, items: Sequence[Item]) -> None:
        self.taken = tx.taken_ids(queue, [item.id for item in items])
        keys = {item.key for item in items if item.key is not None}
        for message in tx.keyed(queue, keys) if keys else ():
            if message.state == "ready" and message.is_late(self.now):
                self.late.append(message)
                continue
            (self.copies if message.state == "buffered" else self.live)[message.key] = message
        self.late.sort(key=lambda message: message.n)  # Stores find keys in an order of their own.

    def place(self, queue: str, item: Item, wall_offset: int) -> None:
        if item.id in self.taken:
            self._answer(item.id, created=False)
        elif item.key is None or item.key not in self.live:
            self._add(item.message(queue, self.now, wall_offset))
        else:
            self._place_behind(queue, item, item.key, wall_offset)

    def _place_behind(self, queue: str, item: Item, key: str, wall_offset: int) -> None:
        """The key is taken: the put's policy decides."""
        first, copy = self.live[key], self.copies.get(key)
        held = first.held_at(self.now)
        policy = item.if_leased if held else item.if_ready
        if policy == "reject":
            raise key_in_flight(queue, key, held=held)
        if policy == "keep":
            self._answer((copy or first).id, created=False)
        elif copy is not None or policy == "update":
            self._update(copy or first, item)
        else:
            message = item.message(queue, self.now, wall_offset)
            position = message.position if message.position > self.now else first.position
            self._add(replace(message, state="buffered", position=position))

    def _add(self, message: Message) -> None:
        self.added[message.id] = message
        self.taken.add(message.id)
        if message.key is not None:
            (self.copies if message.state == "buffered" else self.live)[message.key] = message
        self._answer(message.id, created=True)

    def _update(self, message: Message, item: Item) -> None:
        changed = replace(message, value=item.value, **{name: getattr(item, name) for name in UPDATED})
        (self.added if message.id in self.added else self.updated)[message.id] = changed
        (self.copies if message.state == "buffered" else self.live)[item.key] = changed
        self._answer(message.id, created=False)

    def _answer(self, message_id: str, *, created: bool) -> None:
        self.ids.append(message_id)
        self.created.append(created)

    def check_room(self, tx: Transaction, queue: str) -> None:
        if self.settings is None or self.settings.maxsize is None:
            return
        wanted, maxsize = self.ready_count, self.settings.maxsize
        used = self.settings.size - len(self.late) + tx.reserved.get(queue, 0)
        if wanted and used + wanted > maxsize:
            raise queue_full(queue, used, maxsize, wanted)
        tx.reserved[queue] = tx.reserved.get(queue, 0) + wanted
