"""How commands on queues go to Redis and come back."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct, msgpack

from holdfast.commands import Browse, Browsed, Claim, Claimed, Count, Extend, Filter, Held, Item, Move, Moved, Put, Puts, Settle, Stats
from holdfast.commands.moving import cursor
from holdfast.commands.plain import uses_only
from holdfast.records import ERROR_CHARACTERS, Message, Receipt, moment_in, seconds_in
from holdfast.stores.redis.plans import Fields, Plan, Plans, given, text
from holdfast.stores.redis.records import KeptClaim, KeptMessage


def span(seconds: float | None) -> int | None:
    """A duration in microseconds."""
    return None if seconds is None else moment_in(seconds)


PLAIN = 1_000
"""How many messages the short way of a script takes."""

_SHARED: Final = ("delay_s", "priority", "max_attempts", "dead_letter", "metadata")
"""What messages of one put may have, if all of them have it."""
_options = attrgetter(*_SHARED)
_is_plain_item = uses_only(Item, "id", "value", "if_ready", "if_leased", *_SHARED)
_is_done = uses_only(Settle, "id", "receipts", "return_to", "delay_s", "error", "counts", "max_attempts", "dead_letter", "all_or_none")


def _put(command: Put) -> Fields:
    items = command.items
    if not 0 < len(items) <= PLAIN or not _are_alike(items):
        return {"queue": command.queue, "items": [_item(item) for item in items]}
    return {
        "queue": command.queue,
        "ids": [item.id for item in items],
        "values": [text(item.value) for item in items],
        "shared": _shared(items[0]),
        "delay": moment_in(items[0].delay_s),
    }


def _are_alike(items: Sequence[Item]) -> bool:
    """Whether they have no keys, share their options, and are under different ids."""
    options = _options(items[0])
    is_alike = all(_is_plain_item(item) and _options(item) == options for item in items)
    return is_alike and (len(items) == 1 or len({item.id for item in items}) == len(items))


def _shared(item: Item) -> Fields:
    """What a message that the item puts begins with."""
    metadata = None if item.metadata is None else text(item.metadata)
    return given(priority=item.priority or None, max_attempts=item.max_attempts, dead_letter=item.dead_letter, metadata=metadata)


def _item(item: Item) -> Fields:
    fields: Fields = {"id": item.id, "value": text(item.value)}
    if item.key is not None:
        fields |= {"key": item.key, "if_ready": item.if_ready, "if_leased": item.if_leased}
    if item.delay_s:
        fields["delay"] = moment_in(item.delay_s)
    if item.at is not None:
        fields["at"] = item.at
    if item.priority:
        fields["priority"] = item.priority
    if item.max_attempts is not None:
        fields["max_attempts"] = item.max_attempts
    if item.dead_letter is not None:
        fields["dead_letter"] = item.dead_letter
    if item.start_within_s is not None:
        fields["start_within"] = moment_in(item.start_within_s)
    if item.metadata is not None:
        fields["metadata"] = text(item.metadata)
    return fields


def _claim(command: Claim) -> Fields:
    return given(
        queue=command.queue,
        holder=command.holder,
        limit=command.limit,
        lease=span(command.lease_s),
        key=command.key,
        take=command.take or None,
        expired_to=None if command.expired_to == "place" else command.expired_to,
        max_attempts=command.max_attempts,
        dead_letter=command.dead_letter,
    )


def _receipts(receipts: Sequence[Receipt]) -> list[tuple[str, str, int]]:
    return [(receipt.queue, receipt.id, receipt.token) for receipt in receipts]


def _are_plain(receipts: Sequence[Receipt]) -> bool:
    """Whether they are of one queue and of different messages."""
    return len(receipts) == 1 or (len({one.queue for one in receipts}) == 1 and len({one.id for one in receipts}) == len(receipts))


def _extend(command: Extend) -> Fields:
    return given(receipts=_receipts(command.receipts), lease=span(command.lease_s), all_or_none=command.all_or_none)


def _settle(command: Settle) -> Fields:
    if 0 < len(command.receipts) <= PLAIN and _is_done(command) and _are_plain(command.receipts):
        receipts = command.receipts
        fields = {"queue": receipts[0].queue, "ids": [one.id for one in receipts], "tokens": [one.token for one in receipts]}
        return fields | {"to": "done", "all_or_none": command.all_or_none}
    if command.to == "done":
        return {"receipts": _receipts(command.receipts), "to": "done", "all_or_none": command.all_or_none}
    return given(
        receipts=_receipts(command.receipts),
        to=command.to,
        return_to=command.return_to,
        delay=moment_in(command.delay_s),
        error=command.error[:ERROR_CHARACTERS] if command.error is not None else None,
        counts=command.counts,
        max_attempts=command.max_attempts,
        dead_letter=command.dead_letter,
        all_or_none=command.all_or_none,
    )


def _which(which: Filter) -> Fields:
    return given(older_than=span(which.older_than_s), error_contains=which.error_contains or None, key_prefix=which.key_prefix)


def _browse(command: Browse) -> Fields:
    if command.ids is not None:
        return {"queue": command.queue, "ids": list(command.ids)}
    if command.keys is not None:
        return {"queue": command.queue, "keys": list(command.keys)}
    which = _which(command.which)
    return given(queue=command.queue, state=command.state, which=which, after=command.after, limit=command.limit)


def _move(command: Move) -> Fields:
    return given(
        queue=command.queue,
        to=command.to,
        ids=None if command.ids is None else list(dict.fromkeys(command.ids)),
        state=command.state,
        which=_which(command.which),
        limit=command.limit,
        to_queue=command.to_queue,
        delay=moment_in(command.delay_s),
        spacing=moment_in(command.spacing_s),
        error=command.error[:ERROR_CHARACTERS] if command.error is not None else None,
    )


class _Messages(Struct, frozen=True):
    """Messages, their values, and what else comes with them.

    The short way tells their ids apart, and what a first claim added to those that were never claimed before; their values are in them.
    """

    messages: list[KeptMessage]
    values: list[str] = []
    ids: list[str] = []
    claim: KeptClaim | None = None
    due_in: int | None = None
    index: int = 0
    now: int = 0
    more: bool = False

    def of(self, queue: str) -> list[Message]:
        if self.claim is None:
            return [kept.message(queue, kept.id, value, kept) for kept, value in zip(self.messages, self.values, strict=True)]
        found, claim = zip(self.messages, self.ids, strict=True), self.claim
        return [kept.message(queue, message_id, kept.value, kept if kept.attempts else claim) for kept, message_id in found]


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


_decode_messages = msgpack.Decoder(_Messages).decode
_decode_counted = msgpack.Decoder(_Counted).decode


def _claimed(command: Claim, reply: bytes) -> Claimed:
    found = _decode_messages(reply)
    return Claimed(found.of(command.queue), None if found.due_in is None else seconds_in(found.due_in))


def _browsed(command: Browse, reply: bytes) -> Browsed:
    found = _decode_messages(reply)
    messages = found.of(command.queue)
    if command.ids is not None or command.keys is not None:
        return Browsed(messages, None, found.index, found.now, found.more)
    has_more = found.more or len(messages) == command.limit
    return Browsed(messages, cursor(messages[-1]) if has_more else None, found.index, found.now)


def _counted(_: Count, reply: bytes) -> Stats:
    found = _decode_counted(reply)
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
    return Puts([item.id for item in command.items], [True] * len(command.items))  # The short way: all of them.


def _held(command: Extend | Settle, reply: bytes) -> Held:
    found = _decode_held(reply)
    return found if isinstance(found, Held) else Held([True] * len(command.receipts))  # The short way: all of them.


PLANS: Final[Plans] = {
    Put: Plan(_put, _puts),
    Claim: Plan(_claim, _claimed),
    Extend: Plan(_extend, _held),
    Settle: Plan(_settle, _held),
    Browse: Plan(_browse, _browsed),
    Count: Plan(lambda command: {"queue": command.queue}, _counted),
    Move: Plan(_move, lambda _, reply: _decode_moved(reply)),
}
