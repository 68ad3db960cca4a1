"""Checksums by which the two sides of a copy are compared."""

from collections.abc import Sequence
from hashlib import blake2b

from msgspec import json
from msgspec.structs import astuple, replace

from holdfast.records import Entry, Message

CHECKSUM_BYTES = 16


def checksum_of(records: Sequence[Message | Entry], before: str = "") -> str:
    """A checksum of records in whatever order, going on from that of others."""
    total = int(before or "0", 16)
    for record in records:
        digest = blake2b(json.encode(astuple(comparable(record))), digest_size=CHECKSUM_BYTES).digest()
        total += int.from_bytes(digest, "big")
    return f"{total % 2 ** (8 * CHECKSUM_BYTES):0{2 * CHECKSUM_BYTES}x}"


def comparable(record: Message | Entry) -> Message | Entry:
    """The record without its place in a lane, and, unclaimed, without what it remembers of its last claim: stores differ in these."""
    if isinstance(record, Entry):
        return record
    if record.lane is not None or record.tied or record.rank is not None:
        record = replace(record, lane=None, level=0, rank=None, tied=0)
    return record if record.state == "leased" else replace(record, holder="", token=0, since=0, until=0, expired_to="place")
