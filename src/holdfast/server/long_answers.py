"""Encodes long answers in pieces, between which the event loop does other things.

An answer of 16 MiB takes 25 ms to encode in one go, and everyone waits. A thread would not help: encoding keeps the interpreter.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.commands import Browsed, Claimed, Entries, Page
from holdfast.stores.http.protocol import Waited

LONG_BYTES: Final = 256 * 1024
"""An answer that brings more is encoded in pieces of about as much, or of one record."""

RECORDS: Final[dict[type[Any], str]] = {Browsed: "messages", Claimed: "messages", Entries: "entries", Page: "events", Waited: "topics"}
"""Where the records are in what brings many."""

GAP: Final = b"\0"
"""Stands for the records while the rest is encoded: it is in no JSON."""

encode: Callable[[object], bytes] = json.Encoder().encode


async def encode_long(answer: object) -> list[bytes]:
    """The answer as JSON, in pieces; what is done with it while it is encoded must not change it."""
    pieces, waiting, size = list[bytes](), list[bytes](), 0
    for piece in _pieces(answer):
        waiting.append(piece)
        size += len(piece)
        if size >= LONG_BYTES:
            pieces.append(b"".join(waiting) if len(waiting) > 1 else piece)
            waiting, size = [], 0
            await asyncio.sleep(0)
    return [*pieces, b"".join(waiting)] if waiting else pieces


def _pieces(answer: Any) -> Iterator[bytes]:
    if isinstance(answer, list):  # A step's, one of each command.
        for number, part in enumerate(answer):
            yield b"," if number else b"["
            yield from _pieces(part)
        yield b"]" if answer else b"[]"
    elif (field := RECORDS.get(type(answer))) is None:
        yield encode(answer)
    else:
        head, _, tail = encode(replace(answer, **{field: Raw(GAP)})).partition(GAP)
        yield head
        yield from _records(getattr(answer, field))
        yield tail


def _records(records: Sequence[Any]) -> Iterator[bytes]:
    yield b"["
    begin, size = 0, 0
    for end, record in enumerate(records, 1):
        size += record.size_bytes
        if size >= LONG_BYTES or end == len(records):
            yield b"," if begin else b""
            # One record is often long, and then copied once less.
            yield encode(record) if end - begin == 1 else encode(records[begin:end])[1:-1]
            begin, size = end, 0
    yield b"]"
