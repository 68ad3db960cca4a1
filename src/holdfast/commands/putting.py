"""Putting messages into a queue, and the policies for a key that is already there."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, Literal, Self

from msgspec import Raw, Struct
from msgspec.structs import fields, force_setattr

from holdfast.codec import Limits, check_batch, check_name, check_value_size
from holdfast.codec.fields import (
    AT,
    AT_LATEST_S,
    DELAY_S,
    LABELS,
    MAX_ATTEMPTS,
    METADATA,
    PRIORITY,
    START_WITHIN_S,
    UNIQUE_FOR_S,
    Field,
    check_fields,
)
from holdfast.codec.limits import SHORT
from holdfast.codec.metadata import readable_metadata
from holdfast.commands.argument_checks import check_choice, check_key, check_queue
from holdfast.commands.command import Command, Resource
from holdfast.commands.endings import announce, create_queue, event, promote, resize
from holdfast.commands.lanes import follow
from holdfast.commands.names import Renamer, Verb, all_renamed, renamed
from holdfast.commands.placement import Placement
from holdfast.commands.plain import are_plain, is_plain
from holdfast.commands.recent import recent_dict
from holdfast.commands.transaction import Transaction
from holdfast.records import MaybeRaw, Message, moment_in

IfReady = Literal["keep", "update", "reject", "postpone"]
IfLeased = Literal["keep", "update", "reject", "buffer"]
IfId = Literal["ignore", "reject"]
IfRecent = Literal["keep", "reject"]

UPDATE: Final[IfReady] = "update"
BUFFER: Final[IfLeased] = "buffer"
IGNORE: Final[IfId] = "ignore"
KEEP: Final[IfRecent] = "keep"
NO_DELAY_S: Final = 0.0
NO_PRIORITY: Final = 0
NO_LABELS: Final = ()
"""What is left out is these very objects, and needs no check."""

POLICIES_READY = ("update", "keep", "reject", "postpone")
POLICIES_LEASED = ("buffer", "update", "keep", "reject")
POLICIES_ID = ("ignore", "reject")
POLICIES_RECENT = ("keep", "reject")


class Item(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One message to put."""

    checked: ClassVar[tuple[Field, ...]] = (
        DELAY_S,
        AT,
        PRIORITY,
        MAX_ATTEMPTS,
        START_WITHIN_S,
        METADATA,
        LABELS,
        AT_LATEST_S,
        UNIQUE_FOR_S,
    )
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
    """All but the key, without which the policies for keys mean nothing, and what is rarely asked for."""

    id: str
    value: Raw
    key: str | None = None
    if_ready: IfReady = UPDATE
    if_leased: IfLeased = BUFFER
    delay_s: float = NO_DELAY_S
    at: int | None = None
    """A moment of the wall clock, in microseconds, before which it is not due."""
    priority: int = NO_PRIORITY
    max_attempts: int | None = None
    dead_letter: str | None = None
    start_within_s: float | None = None
    metadata: MaybeRaw = None
    labels: tuple[str, ...] = NO_LABELS
    if_id: IfId = IGNORE
    at_latest_s: float | None = None
    """How long after the first put of the key `if_ready="postpone"` may hold it back."""
    unique_for_s: float | None = None
    """So long after the put that creates the message `if_recent` decides about other puts of the key, once the message is gone."""
    if_recent: IfRecent = KEEP
    group: str | None = None

    def __post_init__(self) -> None:
        # Every put pays for this, so what is short, plain or left out is passed without a call.
        message_id, key = self.id, self.key
        if type(message_id) is not str or not 0 < len(message_id) <= SHORT or not message_id.isprintable():
            check_name(message_id, "message id")
        if key is not None and (type(key) is not str or not 0 < len(key) <= SHORT or not key.isprintable()):
            check_key(key)
        if self.if_ready is not UPDATE or self.if_leased is not BUFFER:
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
            and self.if_id is IGNORE
            and self.at_latest_s is None
            and self.unique_for_s is None
            and self.if_recent is KEEP
            and self.group is None
        ):
            self._check_options()

    def _check_policies(self) -> None:
        if self.if_ready not in POLICIES_READY or self.if_leased not in POLICIES_LEASED:
            check_choice(self.if_ready, POLICIES_READY, "if_ready")
            check_choice(self.if_leased, POLICIES_LEASED, "if_leased")

    def _check_options(self) -> None:
        check_fields(self, self.checked)
        if self.group is not None:
            check_name(self.group, "group")
        if self.if_id is not IGNORE:
            check_choice(self.if_id, POLICIES_ID, "if_id")
        if self.if_recent is not KEEP:
            check_choice(self.if_recent, POLICIES_RECENT, "if_recent")
        if self.at_latest_s is not None and self.if_ready != "postpone":
            raise ValueError('at_latest_s limits if_ready="postpone": give that, too')
        if self.unique_for_s is None and self.if_recent != "keep":
            raise ValueError("if_recent says what to do within unique_for_s: give that, too")
        if self.unique_for_s is not None and self.key is None:
            raise ValueError("unique_for_s is about a key: give key, too")

    def message(self, queue: str, now: int, wall_offset: int, n: int = 0) -> Message:
        """The new message that it puts."""
        position = self.due_at(now, wall_offset)
        start_by = None if self.start_within_s is None else position + moment_in(self.start_within_s)
        return _make_message(self, queue, n, position, start_by, now)

    def due_at(self, now: int, wall_offset: int) -> int:
        """When it may be handed out."""
        position = now + moment_in(self.delay_s) if self.delay_s else now
        return position if self.at is None else max(position, self.at - wall_offset)


KEPT: tuple[str, ...] = tuple(name for name in Item.__struct_fields__ if name in Message.__struct_fields__ and name not in ("id", "value"))
"""The options of a put that a message keeps as they are."""


def _compiled() -> Callable[..., Message]:
    """A function that makes the message of an item, and of what is not the item's.

    Compiled from the names of the fields, as dataclasses do, and by position: by keywords it takes three times as long.
    """
    given = ("queue", "n", "position", "start_by", "created_at")
    of = dict.fromkeys(("id", "value", *KEPT), "item.") | dict.fromkeys(given, "")
    defaults = {f"default_{field.name}": field.default for field in fields(Message) if field.name not in of}
    names = [of.get(name, "default_") + name for name in Message.__struct_fields__]
    text = f"lambda item, {', '.join(given)}: Message({', '.join(names)})"
    made: Callable[..., Message] = eval(text, {"Message": Message, **defaults})  # noqa: S307 - of the names of our own fields
    return made


_make_message = _compiled()


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

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "queue", "items", "recent")

    queue: str
    items: Sequence[Item]
    recent: str | None = None
    """The dict that remembers the keys of items with `unique_for_s`; by default that of the queue: `jobs-recent` for `jobs`."""

    def __post_init__(self) -> None:
        check_queue(self.queue)
        for item in self.items:
            if item.dead_letter is not None and item.dead_letter == self.queue:
                message = f"queue {self.queue!r} cannot be its own dead-letter queue: name another"
                raise ValueError(message)
            if item.unique_for_s is not None and self.recent is None:
                force_setattr(self, "recent", recent_dict(self.queue))
        if self.recent is not None:
            check_name(self.recent, "dict")

    def named(self, names: Renamer) -> Self:
        queue = names.object("queue", self.queue, self.verb)
        recent = None if self.recent is None else names.object("dict", self.recent, "write")
        items = self.items
        for item in items:
            if item.dead_letter is not None:
                others = [item if item.dead_letter is None else renamed(item, dead_letter=names.later(item.dead_letter)) for item in items]
                items = all_renamed(items, others)
                break
        return renamed(self, queue=queue, items=items, recent=recent)

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
        """Whether it puts messages that concern no others: their ids differ, and none has a key unless `also`, fields of items, has it."""
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
            if item.unique_for_s is not None and self.recent is not None:
                yield ("dict", self.recent), False
                yield ("entry", self.recent, item.key), True

    def check(self, tx: Transaction) -> Placement:
        placement = Placement(tx.settings("queue", self.queue), tx.now)
        placement.look_up(tx, self.queue, self.items, self.recent)
        for item in self.items:
            placement.place(self.queue, item, tx.wall_offset)
        placement.check_room(tx, self.queue)
        if placement.recent is not None:
            placement.recent.check(tx)
        return placement

    def write(self, tx: Transaction, plan: Placement) -> Puts:
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
        if plan.postponed:
            tx.save([plan.updated[message_id] for message_id in plan.postponed])
        if updated:
            tx.revalue(updated)
        if plan.is_bounded:
            resize(tx, self.queue, plan.ready_count)
        sooner = [message for message in updated if message.position < plan.postponed.get(message.id, message).position]
        entered = [*(message for message in added if message.state == "ready"), *sooner]
        announce(tx, entered)
        follow(tx, [*plan.late, *plan.postponed.values()], entered)
        # The message that a copy waits behind may be settled by the same step.
        promote(tx, self.queue, [message for message in added if message.state == "buffered"])
        if plan.recent is not None:
            plan.recent.write(tx)
        return Puts(plan.ids, plan.created)


def told_updated(messages: Sequence[Message]) -> dict[str, list[Any]]:
    """What the event of a put says about messages that were there and got a new value: they have keys, all of them."""
    if not messages:
        return {}
    return {"updated": [message.id for message in messages], "updated_keys": [message.key for message in messages]}
