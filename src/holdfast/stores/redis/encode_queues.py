"""Encodes commands on queues for Redis, and decodes their results."""

from operator import attrgetter
from typing import Final

from msgspec import Raw, Struct, msgpack

from holdfast.commands import (
    Browse,
    Browsed,
    Claim,
    Claimed,
    Count,
    Counted,
    Counts,
    Extend,
    Held,
    Item,
    Move,
    Moved,
    Put,
    Puts,
    QueueCount,
    Settle,
    Stats,
)
from holdfast.commands.putting import KEPT
from holdfast.commands.stats import Place
from holdfast.commands.transaction import Cursor
from holdfast.records import Message, seconds_in
from holdfast.stores.redis.plans import Fields, Plan, Plans, Repeated, given, listed_from, stated_fields
from holdfast.stores.redis.records import KeptClaim, KeptMessage, message_of

_OPTIONS: Final = [name for name in Item.__struct_fields__ if name not in ("id", "value")]
_read_options = attrgetter(*_OPTIONS)
_NO_OPTIONS: Final = _read_options(Item("none", Raw(b"null")))
_kept = stated_fields(Item, KEPT)
_facts_of_claim = Repeated(Claim).of
_facts_of_claims: Final = {kind: Repeated(kind, "receipts").of for kind in (Extend, Settle)}
_others = stated_fields(Item, [name for name in _OPTIONS if name not in KEPT])
"""The options that say how a message is put, and are not kept in it."""


def _put(command: Put) -> Fields:
    items = command.items
    options = list(map(_read_options, items))
    are_shared = options.count(options[0]) == len(options) if options else True
    pairs = zip(items[:1], options, strict=False) if are_shared else zip(items, options, strict=True)
    fields: Fields = {
        "queue": command.queue,
        "ids": [item.id for item in items],
        "values": [str(item.value, "utf-8") for item in items],
        "options": [{} if said == _NO_OPTIONS else _stated(item) for item, said in pairs],
    }
    if command.recent is not None:
        fields["recent"] = command.recent
    for item in items[:1] if are_shared else items:
        if item.key is not None:
            fields["is_keyed"] = True
        if item.group is not None:
            fields["is_grouped"] = True
    return fields


def _stated(item: Item) -> Fields:
    """The options of an item, apart from those that its message keeps."""
    fields, kept = _others(item), _kept(item)
    if kept:
        fields["kept"] = kept
    return fields


def _claim(command: Claim) -> Fields:
    fields = _facts_of_claim(command)
    if command.expired_to == "place":
        del fields["expired_to"]  # What is kept leaves out defaults.
    return fields


def _of_claims(command: Extend | Settle) -> Fields:
    """A command on claims: a queue that all share is sent once."""
    receipts = command.receipts
    queues = [receipt.queue for receipt in receipts]
    fields = _facts_of_claims[type(command)](command)
    fields["queues"] = queues[:1] if queues and queues.count(queues[0]) == len(queues) else queues
    fields["ids"] = [receipt.id for receipt in receipts]
    fields["tokens"] = [receipt.token for receipt in receipts]
    return fields


def _of_which(command: Browse | Count | Move) -> Fields:
    """A command on the messages that a filter lets through, or that it names."""
    return {**given(command, "which"), "which": given(command.which)}


def _move(command: Move) -> Fields:
    fields = _of_which(command)
    if command.ids is not None:
        fields["ids"] = list(dict.fromkeys(command.ids))
    return fields


class _Messages(Struct, frozen=True):
    """Messages, their values, and what else comes with them.

    The fast path answers their ids apart, and what a first claim added to those that were never claimed before; their values are in them.
    """

    messages: list[KeptMessage]
    values: list[str] = []
    ids: list[str] = []
    claim: KeptClaim | None = None
    due_in: int | None = None
    index: int = 0
    now: int = 0
    more: bool = False
    after: Cursor | None = None
    careful: bool = False

    def of(self, queue: str) -> list[Message]:
        if self.claim is None:
            return [message_of(queue, found.id, value, found, found) for found, value in zip(self.messages, self.values, strict=True)]
        messages, claim = zip(self.messages, self.ids, strict=True), self.claim
        return [message_of(queue, message_id, found.value, found, found if found.attempts else claim) for found, message_id in messages]


class _Counted(Struct, frozen=True):
    """The sizes of a queue, and its ages in microseconds."""

    ready: int
    delayed: int
    buffered: int
    leased: int
    dead: int
    oldest_ready: int | None = None
    oldest_leased: int | None = None
    average_leased: float | None = None
    oldest_dead: int | None = None
    holders: dict[str, int] = {}
    done: int = 0
    after: Place | None = None


_decode_messages = msgpack.Decoder(_Messages).decode


class _QueueCount(Struct, frozen=True):
    name: str
    stats: _Counted


class _Counts(Struct, frozen=True):
    queues: list[_QueueCount]
    more: bool


_decode_counted = msgpack.Decoder(_Counted).decode
_decode_counts = msgpack.Decoder(_Counts).decode


def _claimed(command: Claim, reply: bytes) -> Claimed:
    found = _decode_messages(reply)
    return Claimed(found.of(command.queue), None if found.due_in is None else seconds_in(found.due_in), found.careful)


def _browsed(command: Browse, reply: bytes) -> Browsed:
    found = _decode_messages(reply)
    messages = found.of(command.queue)
    return Browsed(messages, found.after, found.index, found.now, found.more)


def _counts(_: Counts, reply: bytes) -> Counted:
    found = _decode_counts(reply)
    return Counted([QueueCount(one.name, _stats(one.stats)) for one in found.queues], found.more)


def _stats(found: _Counted) -> Stats:
    return Stats(
        ready=found.ready,
        delayed=found.delayed,
        buffered=found.buffered,
        leased=found.leased,
        dead=found.dead,
        oldest_ready_s=_age_s(found.oldest_ready),
        oldest_leased_s=_age_s(found.oldest_leased),
        average_leased_s=_age_s(found.average_leased),
        oldest_dead_s=_age_s(found.oldest_dead),
        holders=found.holders,
        done=found.done,
        after=found.after,
    )


def _age_s(age: float | None) -> float | None:
    return None if age is None else age / 1_000_000


_decode_puts = msgpack.Decoder(Puts | bool).decode
_decode_held = msgpack.Decoder(Held | bool).decode
_decode_moved = msgpack.Decoder(Moved).decode


def _puts(command: Put, reply: bytes) -> Puts:
    found = _decode_puts(reply)
    if isinstance(found, Puts):
        return found
    return Puts([item.id for item in command.items], [True] * len(command.items))  # The fast path: all of them.


def _held(command: Extend | Settle, reply: bytes) -> Held:
    found = _decode_held(reply)
    return found if isinstance(found, Held) else Held([True] * len(command.receipts))  # The fast path: all of them.


PLANS: Final[Plans] = {
    Put: Plan(_put, _puts, ("key", "group")),
    Claim: Plan(_claim, _claimed, ("take",)),
    Extend: Plan(_of_claims, _held),
    Settle: Plan(_of_claims, _held),
    Browse: Plan(_of_which, _browsed),
    Count: Plan(_of_which, lambda _, reply: _stats(_decode_counted(reply))),
    Counts: Plan(listed_from, _counts),
    Move: Plan(_move, lambda _, reply: _decode_moved(reply)),
}
