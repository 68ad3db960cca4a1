"""From a value and the options of a put to the item that a store is sent."""

from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict

from holdfast.codec import JSON, Codec, encode_key
from holdfast.codec.limits import shown
from holdfast.commands import Item
from holdfast.commands.putting import IfLeased, IfReady
from holdfast.ids import new_id
from holdfast.tracing import is_traced, trace_fields

IfPresent = Literal["keep", "update", "reject", "buffer"]


class Placing(TypedDict, total=False):
    """How a message is placed; `Queue.put` explains each option."""

    if_present: IfPresent | None
    if_ready: IfReady | None
    if_leased: IfLeased | None
    delay_s: float
    at: datetime | None
    priority: int
    start_within_s: float | None


class ManyOptions(Placing, total=False):
    """What may be said about each of several messages."""

    max_attempts: int | None
    dead_letter_queue: str | None
    metadata: Mapping[str, Any] | None


class PutOptions(ManyOptions, total=False):
    """What may be said about a message besides its value."""

    key: Hashable | None
    id: str | None


class WorkOptions(Placing, total=False):
    """What may be said about a work item besides its value and budget."""

    key: Hashable | None
    id: str | None
    timeout_s: float | None
    poll_interval_s: float


def make_item(
    value: object,
    codec: Codec,
    *,
    key: Hashable | None = None,
    if_present: IfPresent | None = None,
    if_ready: IfReady | None = None,
    if_leased: IfLeased | None = None,
    delay_s: float = 0.0,
    at: datetime | None = None,
    priority: int = 0,
    max_attempts: int | None = None,
    dead_letter_queue: str | None = None,
    start_within_s: float | None = None,
    metadata: Mapping[str, Any] | None = None,
    id: str | None = None,
) -> Item:
    """Encode the value and check the options."""
    if key is None and (if_present or if_ready or if_leased):
        raise ValueError("if_present, if_ready and if_leased say what to do about a key: give key=, too")
    if if_present is not None:
        # To buffer is the default: what is ready is updated, behind what is claimed a copy waits.
        if_ready = if_ready or ("update" if if_present == "buffer" else if_present)
        if_leased = if_leased or if_present
    # What the caller says comes last: who carries a trace of their own knows better.
    beside = dict(metadata) if metadata is not None else None
    if is_traced() and (fields := trace_fields()):
        beside = {**fields, **(beside or {})}
    return Item(
        new_id() if id is None else str(id),
        codec.encode(value),
        None if key is None else encode_key(key),
        if_ready or "update",
        if_leased or "buffer",
        delay_s,
        None if at is None else _microseconds(at, delay_s),
        priority,
        max_attempts,
        dead_letter_queue,
        start_within_s,
        None if beside is None else JSON.encode(beside),
    )


def _microseconds(at: object, delay_s: float) -> int:
    if not isinstance(at, datetime):
        raise TypeError(f"at must be a datetime with a time zone, not {shown(at)} ({type(at).__name__}); delay_s= takes seconds from now")
    if delay_s:
        raise ValueError("give delay_s= or at=, not both")
    if at.tzinfo is None:
        raise ValueError("at= needs a time zone: datetime.now(UTC) + …, or when.astimezone() for local time")
    return round(at.timestamp() * 1_000_000)
