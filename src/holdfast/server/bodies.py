"""Reading the body of a request: no longer than allowed, no deeper, and text."""

import asyncio
from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from msgspec import json

from holdfast.server.asgi import BODY, CLOSE, READ, ClientLeft, Receive, Scope, header
from holdfast.server.browsers import is_json
from holdfast.stores.http.problems import WireError

BODY_BYTES: Final = 24 * 1024 * 1024
"""A batch of 16 MiB of values, with room for their ids and options."""

BODY_S: Final = 30.0
DEPTH: Final = 100

LARGE_BYTES: Final = 128 * 1024
"""A body longer than this is looked through in a thread: others are served meanwhile."""

PIECE_BYTES: Final = 64 * 1024
"""How much is looked at in one go: a thread lets others go on only between two of them."""

_NO_MARK = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_STEPS = bytes.maketrans(b"[{]}", bytes([1, 1, 255, 255]))
"""A bracket as the step it makes, up or down, in a signed byte."""


async def read_body(scope: Scope, receive: Receive, most_bytes: int = BODY_BYTES) -> bytes:
    """The body, refused as soon as it is too long, whatever its length was said to be."""
    if not is_json(header(scope, b"content-type")):
        raise WireError("wrong_content_type", 415, "the body must come with the header Content-Type: application/json", CLOSE)
    encoding = header(scope, b"content-encoding")
    if encoding not in (None, b"identity"):
        raise WireError("too_large", 415, "the body is compressed, and a small one may hide a large one: send it as it is", CLOSE)
    if (whole := scope.pop(BODY, None)) is not None:  # Nearly always; who waits long must not keep it.
        if len(whole) > most_bytes:
            raise _too_large(most_bytes)
        scope[READ] = True
        return await _checked(whole)
    said = header(scope, b"content-length")
    if said is not None and (not said.isdigit() or len(said) > len(str(most_bytes)) or int(said) > most_bytes):
        raise _too_large(most_bytes)
    try:
        async with asyncio.timeout(BODY_S):
            body = await _read(receive, most_bytes)
    except TimeoutError:
        raise WireError("too_slow", 408, f"the body was not whole after {BODY_S:g} s", CLOSE) from None
    scope[READ] = True
    return await _checked(body)


async def _checked(body: bytes) -> bytes:
    return check_json(body) if len(body) <= LARGE_BYTES else await asyncio.to_thread(check_json, body)


async def _read(receive: Receive, most_bytes: int) -> bytes:
    chunks, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > most_bytes:
            raise _too_large(most_bytes)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def check_json(body: bytes) -> bytes:
    """Give the body back, without the white space between its parts, if it is JSON, UTF-8 and not nested too deep.

    Values are kept as the text they came in and compared by it, so `{"a": 1}` and `{"a":1}` must be one.
    """
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise WireError("not_json", 400, "the body is not UTF-8") from error
    if body.count(b"[") + body.count(b"{") > DEPTH and _is_deep(body):
        raise WireError("too_deep", 422, f"the body is nested more than {DEPTH} levels deep: send it as a text")
    has_space = b" " in body or b"\n" in body or b"\r" in body or b"\t" in body
    return json.format(body, indent=-1) if has_space else body


def _is_deep(body: bytes) -> bool:
    """Whether more brackets are open at once than may be, in one pass."""
    depth, is_in_text = 0, False
    for piece in _pieces(body):
        marks = (b'"' if is_in_text else b"") + _marks(piece)
        texts = marks.split(b'"')
        is_in_text = len(texts) % 2 == 0
        steps = array("b", b"".join(texts[::2]).translate(_STEPS))
        if max(accumulate(steps, initial=depth)) > DEPTH:
            return True
        depth += sum(steps)
    return False


def _pieces(body: bytes) -> Iterator[bytes]:
    """The body in pieces, none of which ends within an escape."""
    begin = 0
    while begin < len(body):
        piece = body[begin : begin + PIECE_BYTES]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = body[begin : begin + PIECE_BYTES + 1]
        yield piece
        begin += len(piece)


def _marks(piece: bytes) -> bytes:
    """The brackets, and the quotes that begin or end a text."""
    if b"\\" in piece:
        piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
    return piece.translate(None, delete=_NO_MARK)


def _too_large(most_bytes: int) -> WireError:
    return WireError("too_large", 413, f"the body is longer than {most_bytes:,} bytes: send several", CLOSE)
