"""The layout of keys: their byte order is the order in which a transaction reads them.

Every key begins with a scope: the queue, dict or topic it belongs to. No scope begins another, so all keys of one lie side by side.
"""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from struct import Struct

import lmdb

LONGEST = 511
"""How many bytes LMDB takes for a key."""

SHORT = 64
"""Longer names are a digest in their scope: a scope, a dict key of 400 bytes and a moment must fit one key."""

NUMBER = Struct(">Q")
_LINE = Struct(">IQQ")
_MOMENT = Struct(">QQ")
_PRIORITY = Struct(">I")
PRIORITY_BYTES = _PRIORITY.size
LAST = 2**64 - 1
"""Behind every number."""

_SHIFT = 2**63
_TOP = 2**31 - 1
_LAST = 2**32 - 1
_DIGEST_BYTES = 32
_NO_TEXT = b"\xff"
"""Stands in no UTF-8, so what follows is a digest."""


@lru_cache(4096)
def scope(name: str | None) -> bytes:
    """What every key of a queue, a dict or a topic begins with; None is the dict of leases that have none."""
    text = (name or "").encode()
    if len(text) <= SHORT:
        return bytes([len(text)]) + text
    return _NO_TEXT + blake2b(text, digest_size=_DIGEST_BYTES).digest()


def scope_in(key: bytes) -> bytes:
    """The scope that a key begins with."""
    return key[: 1 + (_DIGEST_BYTES if key[:1] == _NO_TEXT else key[0])]


def name_in(start: bytes) -> str | None:
    """The name of a scope, None where only its digest is there."""
    return None if start[:1] == _NO_TEXT else start[1:].decode()


def text_key(start: bytes, text: str) -> bytes:
    """The key of a text within a scope, in the order of texts."""
    return fitted(start, text.encode())


def fitted(start: bytes, text: bytes) -> bytes:
    """The key of an encoded text; one that does not fit, longer than a dict's key may be, keeps its beginning and a digest."""
    room = LONGEST - len(start)
    if len(text) <= room:
        return start + text
    return start + text[: room - _DIGEST_BYTES - 1] + _NO_TEXT + blake2b(text, digest_size=_DIGEST_BYTES).digest()


def line_key(queue: bytes, priority: int, position: int, n: int) -> bytes:
    """Sorts by priority, the highest first, then by position and number."""
    return queue + _LINE.pack(_TOP - priority, position + _SHIFT, n)


def line_start(queue: bytes, priority: int) -> bytes:
    """Where the line of one priority begins."""
    return queue + _PRIORITY.pack(_TOP - priority)


def below(queue: bytes, line: bytes) -> bytes | None:
    """Where the line below begins, None below the lowest."""
    (inverted,) = _PRIORITY.unpack_from(line, len(queue))
    return None if inverted == _LAST else queue + _PRIORITY.pack(inverted + 1)


def position_in(queue: bytes, key: bytes) -> int:
    """The position in a key of `line_key`."""
    position: int = _LINE.unpack_from(key, len(queue))[1]
    return position - _SHIFT


def moment_key(start: bytes, moment: int, n: int) -> bytes:
    """Sorts by a moment, then by number."""
    return start + _MOMENT.pack(moment + _SHIFT, n)


def moment_in_key(start: bytes, key: bytes) -> int:
    """The moment in a key of `moment_key` or `moment_start`."""
    moment: int = NUMBER.unpack_from(key, len(start))[0]
    return moment - _SHIFT


def moment_start(moment: int) -> bytes:
    """Sorts by a moment alone."""
    return NUMBER.pack(moment + _SHIFT)


def items_within(cursor: "lmdb.Cursor[bytes]", start: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """What lies in a scope, in order, behind the key `after`."""
    # A key that is too long to seek is longer than any there, so its beginning lies at the same place among them.
    seek = max(start, after)[:LONGEST]
    if not cursor.set_range(seek):
        return
    for key, value in cursor.iternext():
        if not key.startswith(start):
            return
        if key != after:
            yield key, value
