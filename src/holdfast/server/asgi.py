"""ASGI types and helpers that the server's parts share."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any, Final

from holdfast.telemetry.meters import OTHER

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON_TYPE = (b"content-type", b"application/json")


STATUS: Final = "holdfast.status"
"""Where the status of the answer is in the scope, once it has begun; who looks on needs not stand between the route and the socket."""

FORM: Final = "holdfast.form"
"""Where the form of a path with names in it is in the scope, once its route is found."""

BODY: Final = "holdfast.body"
"""Where the body is in the scope, if it came in one piece with the head of its request."""

READ: Final = "holdfast.read"
"""Set in the scope once the body was read to its end."""

SLOTS: Final = "holdfast.slots"
"""Where those who count a request are in the scope, to be called when it counts no longer."""

REPLY: Final = "holdfast.reply"
"""Where a connection offers in the scope to send a whole answer in one piece."""

HANG_UP: Final = "holdfast.hang_up"
"""Where a connection offers in the scope to be cut off at once, with what was not sent yet."""

SEND_S: Final = 60.0
"""How long a client may take for one piece."""

PIECE_BYTES: Final = 64 * 1024
"""How much is sent at a time: for a client that does not read, the rest is not copied to the socket."""

LET_OTHERS_BYTES: Final = 4 * PIECE_BYTES
"""After so much, others have their turn."""

LEFT: Final = 499
"""The status, for logs and counters alone, of a request whose client left before it was whole."""


class ClientLeft(Exception):  # noqa: N818 - it is no error
    """The client hung up before its request was whole, or does not read: no response can be sent."""


Headers = tuple[tuple[bytes, bytes], ...]
Reply = Callable[[int, bytes, Headers], bool]
"""Sends status, body and headers, or returns False: then they go the ordinary way."""


CLOSE: Final[Headers] = ((b"connection", b"close"),)
"""For a body that is not read to its end: who sends it slowly must not keep the connection."""


def route_of(scope: Scope, routes: Collection[str]) -> str:
    """The route of a request that was answered: its path, or the form of it, if that is one of ours. Any other path may be a secret."""
    path: str = scope["path"]
    form: str = scope.get(FORM, OTHER)
    return path if path in routes else form


async def answer(scope: Scope, send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Send a whole response; the last of its connection, where the body of the request was not read."""
    scope[STATUS] = status
    headers = ((b"content-length", b"%d" % len(body)), *headers)
    reply: Reply | None = scope.get(REPLY)
    if not is_read(scope):
        reply, headers = None, (*headers, *(CLOSE if CLOSE[0] not in headers else ()))
    if len(body) > PIECE_BYTES or reply is None or not reply(status, body, headers):
        await _send_all(scope, send, status, [body], headers)


async def answer_in_pieces(scope: Scope, send: Send, status: int, pieces: list[bytes], *headers: tuple[bytes, bytes]) -> None:
    """Send a response whose request was read, and forget each piece that was sent."""
    scope[STATUS] = status
    length = (b"content-length", b"%d" % sum(map(len, pieces)))
    await _send_all(scope, send, status, pieces, (length, *headers))


async def _send_all(scope: Scope, send: Send, status: int, pieces: list[bytes], headers: Headers) -> None:
    await send_in_time(scope, send, {"type": "http.response.start", "status": status, "headers": headers})
    pieces.reverse()
    while pieces:
        await send_pieces(scope, send, pieces.pop())
    await send_in_time(scope, send, {"type": "http.response.body", "body": b""})


async def send_pieces(scope: Scope, send: Send, body: bytes) -> None:
    """Send a part of a response, as fast as the client reads; others go on in between, however fast that is."""
    whole = memoryview(body)
    for start in range(0, len(body), PIECE_BYTES):
        if start % LET_OTHERS_BYTES == LET_OTHERS_BYTES - PIECE_BYTES:
            await asyncio.sleep(0)
        await send_in_time(scope, send, {"type": "http.response.body", "body": whole[start : start + PIECE_BYTES], "more_body": True})


async def send_in_time(scope: Scope, send: Send, message: Message) -> None:
    """Send, or cut off a client that does not read."""
    try:
        async with asyncio.timeout(SEND_S):
            await send(message)
    except TimeoutError:
        await cut_off(scope)
        raise ClientLeft from None


async def cut_off(scope: Scope) -> bool:
    """Close the connection of a response that will have no end; whether it offers that."""
    hang_up: Callable[[], None] | None = scope.get(HANG_UP)
    if hang_up is None:
        return False
    hang_up()
    await asyncio.sleep(0)  # Let the connection hear of it: else it would be told that the response lacks its end.
    return True


def header(scope: Scope, name: bytes) -> bytes | None:
    """The value of a request's header; None if it is missing."""
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return None


def is_read(scope: Scope) -> bool:
    """Whether nothing of the request's body is still to come."""
    if BODY in scope or READ in scope:
        return True
    return header(scope, b"content-length") in (None, b"0") and header(scope, b"transfer-encoding") is None


def leave_slots(scope: Scope) -> None:
    """Count the request as under way no longer: it was answered, or it waits for something now. Idempotent."""
    slots: list[Callable[[], None]] = scope.get(SLOTS, [])
    while slots:
        slots.pop()()
