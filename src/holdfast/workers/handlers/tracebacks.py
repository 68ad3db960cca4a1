"""Tracebacks of handlers as text: where it was raised, and never what variables held."""

import traceback
from types import TracebackType
from typing import Final

from holdfast.codec import keepable

TRACEBACK_BYTES: Final = 16 * 1024
"""How much of a traceback is kept: its end, which says what was raised and where."""


def users_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame on that is not Holdfast's own; all of it if there is none."""
    part = trace
    while part is not None and part.tb_frame.f_globals.get("__name__", "").startswith("holdfast."):
        part = part.tb_next
    return part or trace


def trace_of(error: BaseException) -> str:
    """The traceback as text."""
    return "".join(traceback.format_exception(type(error), error, users_part(error.__traceback__))).rstrip()


def kept_trace(text: str) -> str:
    """A traceback as it is stored: no more than its last 16 KiB."""
    whole = keepable(text).encode()
    if len(whole) <= TRACEBACK_BYTES:
        return whole.decode()
    return "[…]\n" + whole[-(TRACEBACK_BYTES - 8) :].decode(errors="ignore")
