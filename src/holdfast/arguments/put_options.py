"""The options of a put, and the item that a store is sent for them."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from holdfast.arguments.options import refuse_unknown
from holdfast.codec import JSON, Codec, encode_key
from holdfast.codec.limits import shown
from holdfast.commands import Item
from holdfast.commands.putting import IfId, IfLeased, IfReady, IfRecent
from holdfast.ids import new_id
from holdfast.telemetry.tracing import is_traced, trace_fields

IfPresent = Literal["keep", "update", "reject", "buffer"]


class MessageOptions(TypedDict, total=False):
    """What a message has besides its value, whatever puts it."""

    priority: int
    """Higher ones are handed out first; by default 0."""
    dead_letter_queue: str | None
    """The queue that the message goes to once its attempts are spent; None, the default, keeps it as a dead letter where it is."""
    start_within_s: float | None
    """The message is dropped if no worker has started it so long after it was due; None, the default, is never."""
    metadata: Mapping[str, Any] | None
    """A JSON object that travels beside the value."""
    labels: Sequence[str]
    """Up to 16 short texts by which `browse` and bulk actions find the message."""
    group: str | None
    """The group of the message: a tenant, a customer, an account. Where the queue has `groups`, they share it: see `Queue.configure`."""


class SharedOptions(MessageOptions, total=False):
    """The options that every kind of put has."""

    if_present: IfPresent | None
    """Sets `if_ready` and `if_leased` to the same; `buffer` leaves both at their defaults."""
    if_ready: IfReady | None
    """What happens if a message of the key is waiting: `update` it (the default), `keep` it, `reject` the put with `KeyInFlight`, or
    `postpone` it: update it, and let it be due when this put says, counted from now."""
    if_leased: IfLeased | None
    """What happens if a message of the key is claimed: `buffer` (the default) makes the new one wait behind it; the others are as above."""
    at_latest_s: float | None
    """How long after the message was put `if_ready="postpone"` may hold it back; None, the default, is for ever."""
    unique_for_s: float | None
    """So long after the put that creates the message no other put of the key creates one, whatever became of the message: see `if_recent`.
    None, the default, lets the key go with its message."""
    if_recent: IfRecent
    """What happens within `unique_for_s` once the message is gone: `keep` (the default) puts nothing and returns its id, `reject` raises
    `KeyInFlight`. While the message waits or is claimed, `if_ready` and `if_leased` decide."""
    if_id: IfId
    """What happens if the id is known and has another value: `ignore` the put (the default), or `reject` it with `IdTaken`."""
    delay_s: float
    """How long the message is held back, by default 0 seconds."""
    at: datetime | None
    """The moment, with time zone, before which the message is not handed out; instead of `delay_s`."""


class NamingOptions(TypedDict, total=False):
    """The options that name one message."""

    key: Hashable | None
    """Names at most one living message of the queue: see `if_ready` and `if_leased`."""
    id: str | None
    """The id of the message, by default a new one. A put under an id that exists changes nothing: see `if_id`."""


class ManyOptions(SharedOptions, total=False):
    """The options of `put_many`: those of `put` without `key` and `id`."""

    max_attempts: int | None
    """After how many failures and expiries the message is dead; None, the default, is no limit of its own."""


class PutOptions(NamingOptions, ManyOptions, total=False):
    """The options of `put`: everything about a message besides its value."""


OPTIONS: Final = frozenset(PutOptions.__annotations__)
MANY_OPTIONS: Final = frozenset(ManyOptions.__annotations__)
POLICIES: Final = frozenset({"if_present", "if_ready", "if_leased"})
TRANSLATED: Final = POLICIES | {"id", "key", "at", "dead_letter_queue", "metadata"}
"""Options that are not, or not as they are given, fields of an item. All others are."""


def make_item(value: object, codec: Codec, options: Mapping[str, Any]) -> Item:
    """Encode the value and check the options: those of `PutOptions`."""
    # Every put pays for this, so what is left out costs next to nothing.
    if not OPTIONS.issuperset(options):
        refuse_unknown("put", options, OPTIONS)
    if is_traced() or not TRANSLATED.isdisjoint(options):
        return _translated(value, codec, {**options})
    return Item(new_id(), codec.encode(value), **options)


def make_items(values: Iterable[object], codec: Codec, options: ManyOptions, keys: Iterable[Hashable | None] | None = None) -> list[Item]:
    """The items of several values, with the same options for each and a key of its own."""
    refuse_unknown("put_many", options, MANY_OPTIONS)
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise TypeError(f"put_many takes a list of values, not one {type(values).__name__}: give [value], or put it with put")
    if keys is None:
        return [make_item(value, codec, options) for value in values]
    values, keys = list(values), list(keys)
    if len(values) != len(keys):
        raise ValueError(f"keys must have one key, or None, for each value: there are {len(keys):,} keys and {len(values):,} values")
    return [make_item(value, codec, {**options, "key": key}) for value, key in zip(values, keys, strict=True)]


def _translated(value: object, codec: Codec, fields: dict[str, Any]) -> Item:
    pop = fields.pop
    message_id, key, metadata = pop("id", None), pop("key", None), pop("metadata", None)
    if not POLICIES.isdisjoint(fields):
        _translate_policies(fields, is_keyed=key is not None)
    if "at" in fields and fields["at"] is not None:
        fields["at"] = _microseconds(fields["at"], fields.get("delay_s"))
    if "dead_letter_queue" in fields:
        fields["dead_letter"] = pop("dead_letter_queue")
    if is_traced() and (traced := trace_fields()):
        # What the caller says comes last: who carries a trace of their own knows better.
        metadata = {**traced, **_mapping(metadata or {})}
    if metadata is not None:
        fields["metadata"] = JSON.encode(_mapping(metadata))
    return Item(
        new_id() if message_id is None else str(message_id),
        codec.encode(value),
        None if key is None else encode_key(key),
        **fields,
    )


def _mapping(metadata: object) -> dict[Any, Any]:
    if type(metadata) is not dict and not isinstance(metadata, Mapping):  # The second takes as long as to encode it.
        raise TypeError(f"metadata must be a mapping of texts to plain data, not {shown(metadata)} ({type(metadata).__name__})")
    if not all(isinstance(name, str) for name in metadata):
        raise TypeError(f"metadata must be a mapping of texts to plain data, and {shown(metadata)} has other keys")
    return dict(metadata)


def _translate_policies(fields: dict[str, Any], *, is_keyed: bool) -> None:
    if_present, if_ready, if_leased = (fields.pop(name, None) for name in ("if_present", "if_ready", "if_leased"))
    if not is_keyed and (if_present or if_ready or if_leased):
        raise ValueError("if_present, if_ready and if_leased say what to do about a key: give key=, too")
    if if_present and if_present != "buffer":
        # To buffer is the default: what is ready is updated, behind what is claimed a copy waits.
        if_ready, if_leased = if_ready or if_present, if_leased or if_present
    if if_ready:
        fields["if_ready"] = if_ready
    if if_leased:
        fields["if_leased"] = if_leased


def _microseconds(at: object, delay_s: object) -> int:
    if not isinstance(at, datetime):
        raise TypeError(f"at must be a datetime with a time zone, not {shown(at)} ({type(at).__name__}); delay_s= takes seconds from now")
    if delay_s:
        raise ValueError("give delay_s= or at=, not both")
    if at.tzinfo is None:
        raise ValueError("at= needs a time zone: datetime.now(UTC) + …, or when.astimezone() for local time")
    return round(at.timestamp() * 1_000_000)
