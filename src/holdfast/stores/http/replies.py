"""Converts a server's reply to a result or an error."""

import re
from collections.abc import Mapping

from msgspec import DecodeError, Struct

from holdfast.errors import OutcomeUnknown, StoreError, StoreUnavailable
from holdfast.stores.http.problems import CONTENT_TYPE, decode_problem, error_of
from holdfast.stores.retrying import Lost

OK = 200
GATEWAY = {502, 503, 504}
"""What a proxy says when the server behind it is gone."""

_SPACE = re.compile(r"\s+")


class Reply(Struct, frozen=True):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def body_of(reply: Reply) -> bytes:
    """The body of a good reply; else the error it describes, `Lost` where another try may help."""
    if reply.status == OK:
        return reply.body
    if not reply.headers.get("content-type", "").startswith(CONTENT_TYPE):
        raise _from_a_stranger(reply)
    try:
        error = error_of(decode_problem(reply.body))
    except DecodeError as problem:
        raise _from_a_stranger(reply) from problem
    if isinstance(error, OutcomeUnknown):
        raise Lost(str(error), maybe_applied=True) from error
    if isinstance(error, StoreUnavailable):
        raise Lost(str(error), maybe_applied=False) from error
    raise error


def _from_a_stranger(reply: Reply) -> Exception:
    """What to raise for a reply that no Holdfast server gives."""
    said = _SPACE.sub(" ", reply.body[:100].decode(errors="replace"))
    message = f"the response with HTTP {reply.status} is not from a Holdfast server ({said!r}): check the URL, and the proxy in front of it"
    return Lost(message, maybe_applied=True) if reply.status in GATEWAY else StoreError(message)
