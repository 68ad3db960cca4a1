"""Reads the body of a request, within its limits."""

import asyncio
import time
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import Final, Generic, TypeVar

from msgspec import Struct, json

from holdfast.commands.names import Verb
from holdfast.commands.together import COMMANDS
from holdfast.server.asgi import BODY, CLOSE, READ, ClientLeft, Receive, Scope, header
from holdfast.server.auth.browsers import is_json
from holdfast.server.auth.callers import caller_of, who_asks
from holdfast.server.load.body_budget import Budget, Room
from holdfast.server.load.loop_time import charge_to, measured
from holdfast.stores.http.problems import WireError

T = TypeVar("T")

BODY_BYTES: Final = 24 * 1024 * 1024
"""A batch of 16 MiB of values, with room for their ids and options."""

READERS_BYTES: Final = 8 * 1024 * 1024
"""For callers who send no values: 10,000 names, keys or receipts."""

SENDERS: Final[tuple[Verb, ...]] = ("put", "write", "hold", "signal", "manage")
"""Callers with any of these rights send values."""

BODY_S: Final = 30.0
DEPTH: Final = 100

SHORT_BYTES: Final = 4 * 1024
"""A body longer than this waits while its caller rests, and the caller rests for what is done with it on the event loop."""

LARGE_BYTES: Final = 128 * 1024
"""A body longer than this is looked through and decoded in a thread, when it is its caller's turn."""

PIECE_BYTES: Final = 64 * 1024
"""How much is looked at in one go: a thread lets others go on only between two of them."""

PARTS: Final = 500_000
"""How many brackets and commas a body may have, in its commands and their items: more than the largest batch has."""

_NO_MARK = bytes(byte for byte in range(256) if byte not in b'[]{},"')
_STEPS = bytes.maketrans(b"[{]},", bytes([1, 1, 255, 255, 0]))
"""A bracket as the step it makes, up or down, in a signed byte; a comma makes none."""


_DEEPER = [bytes(range(level + 1, 128)) for level in range(10)]
"""What is deeper than each level, as signed bytes."""

LIST_LEVEL: Final = 2
MARKS_EACH: Final = 4
"""How many brackets and commas each item has at most that are as deep as the list it is in, with those of the command around it."""


class Shape(Struct, frozen=True):
    """What a decoder makes objects of: a list of so many, and what is in them so many levels deep. Values below stay the text they are."""

    most: int = 10_000
    levels: int = 3


BATCH: Final = Shape()
STEP: Final = Shape(COMMANDS, 5)


class Bodies:
    """Reads and decodes the bodies of one server's requests."""

    def __init__(self, budget: Budget, most_bytes: int = BODY_BYTES) -> None:
        self._budget = budget
        self._most_bytes = most_bytes

    def short(self, scope: Scope) -> bytes | None:
        """The body, nearly always: if it is short, and came with its head; else it is to be read and `decoded`."""
        _check_headers(scope)
        if BODY not in scope or len(scope[BODY]) > min(SHORT_BYTES, self._most_bytes):
            return None
        scope[READ] = True
        return check_json(scope.pop(BODY))  # Who waits long must not keep it.

    async def decoded(self, scope: Scope, receive: Receive, decode: Callable[[bytes], T], shape: Shape = BATCH) -> T:
        """The body, refused as soon as it is too long, whatever its length was said to be."""
        short = self.short(scope)
        if short is not None:
            return decode(short)
        return await self._decoded_long(scope, receive, partial(_decode_long, decode, shape), scope.pop(BODY, None))

    async def _decoded_long(self, scope: Scope, receive: Receive, decode: Callable[[bytes], T], whole: bytes | None) -> T:
        caller = caller_of(scope)
        whose = who_asks(caller)
        most_bytes = self._most_bytes if any(map(caller.may_anywhere, SENDERS)) else min(self._most_bytes, READERS_BYTES)
        if whole is not None or is_said_long(scope):
            await self._budget.rest(whose)
        with self._budget.room(whose) as room:
            if whole is not None and len(whole) > most_bytes:
                raise _too_large(most_bytes)
            pieces = await _read(scope, receive, room, most_bytes) if whole is None else [whole]
            size = sum(map(len, pieces))
            room.grow_to(size)
            scope[READ] = True
            if size > SHORT_BYTES:
                charge_to(self._budget, whose)
            doing = _Decoding(pieces, decode)
            if size <= LARGE_BYTES:
                return measured(doing)
            async with self._budget.turn(whose):
                try:
                    return await asyncio.to_thread(doing)
                finally:
                    self._budget.charge(whose, doing.spent_s)


class _Decoding(Generic[T]):
    """Joins a body, looks through it and decodes it, in a thread if it is long; during the last part the interpreter runs nothing else."""

    def __init__(self, pieces: list[bytes], decode: Callable[[bytes], T]) -> None:
        self._pieces = pieces
        self._decode = decode
        self.spent_s = 0.0

    def __call__(self) -> T:
        began = time.thread_time()
        try:
            body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()  # Or it would be in memory twice.
            return self._decode(body)
        finally:
            self.spent_s = time.thread_time() - began


def _decode_long(decode: Callable[[bytes], T], shape: Shape, body: bytes) -> T:
    return decode(check_json(body, shape))


def _check_headers(scope: Scope) -> None:
    if not is_json(header(scope, b"content-type")):
        raise WireError("wrong_content_type", 415, "the body must come with the header Content-Type: application/json", CLOSE)
    encoding = header(scope, b"content-encoding")
    if encoding not in (None, b"identity"):
        raise WireError("too_large", 415, "compressed bodies are refused: send it uncompressed", CLOSE)


def is_said_long(scope: Scope) -> bool:
    """Whether the head says of the body that it is long, or does not say how long it is."""
    said = header(scope, b"content-length")
    return said is None or len(said) > len(str(LARGE_BYTES)) or not said.isdigit() or int(said) > SHORT_BYTES


async def _read(scope: Scope, receive: Receive, room: Room, most_bytes: int) -> list[bytes]:
    said = header(scope, b"content-length")
    if said is not None:
        if not said.isdigit() or len(said) > len(str(most_bytes)) or int(said) > most_bytes:
            raise _too_large(most_bytes)
        room.grow_to(int(said))
    try:
        async with asyncio.timeout(BODY_S):
            return await _read_pieces(receive, room, most_bytes)
    except TimeoutError:
        raise WireError("too_slow", 408, f"the body was not complete after {BODY_S:g} s", CLOSE) from None


async def _read_pieces(receive: Receive, room: Room, most_bytes: int) -> list[bytes]:
    pieces, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > most_bytes:
            raise _too_large(most_bytes)
        room.grow_to(size)
        if not message.get("more_body"):
            return pieces


def check_json(body: bytes, shape: Shape = BATCH) -> bytes:
    """Give the body back, without the white space between its parts, if it is JSON, UTF-8, not nested too deep and not of too many parts.

    Values are kept as the text they came in and compared by it, so `{"a": 1}` and `{"a":1}` must be one.
    """
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise WireError("not_json", 400, "the body is not UTF-8") from error
    if len(body) > LARGE_BYTES or body.count(b"[") + body.count(b"{") > DEPTH:
        _look_through(body, shape)
    has_space = b" " in body or b"\n" in body or b"\r" in body or b"\t" in body
    return json.format(body, indent=-1) if has_space else body


def _look_through(body: bytes, shape: Shape) -> None:
    """Refuse a body in which more brackets are open at once than may be, or of too many parts, in one pass."""
    depth, is_in_text, listed, parts = 0, False, 0, 0
    for piece in _pieces(body):
        marks = (b'"' if is_in_text else b"") + _marks(piece)
        texts = marks.split(b'"')
        is_in_text = len(texts) % 2 == 0
        steps = array("b", b"".join(texts[::2]).translate(_STEPS))
        try:
            depths = array("b", accumulate(steps, initial=depth))
        except OverflowError:
            if max(accumulate(steps, initial=depth)) > DEPTH:
                raise _too_deep() from None
            return  # More were closed than opened: it is no JSON, and who decodes it reads no further.
        if max(depths) > DEPTH:
            raise _too_deep()
        listed += _count_to(depths, LIST_LEVEL)
        parts += _count_to(depths, shape.levels)
        if listed > MARKS_EACH * shape.most or parts > PARTS:
            raise WireError("too_large", 413, f"the body has more parts than the limit of {shape.most:,}: split it")
        depth = depths[-1]


def _count_to(depths: "array[int]", level: int) -> int:
    """How many of the depths, but for the first, which was counted before, are no deeper than that."""
    return len(depths.tobytes().translate(None, delete=_DEEPER[level])) - (depths[0] <= level)


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


def _too_deep() -> WireError:
    return WireError("too_deep", 422, f"the body is nested more than {DEPTH} levels deep: send it as a text")


def _too_large(most_bytes: int) -> WireError:
    return WireError("too_large", 413, f"the body is longer than {most_bytes:,} bytes: split it", CLOSE)
