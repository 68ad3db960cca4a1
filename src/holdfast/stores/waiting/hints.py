"""Hints received over a channel of a database, to which other programs may write too."""

from typing import Final

COUNT_DIGITS: Final = 18


def count_of(text: bytes) -> int | None:
    """The count of a hint; None for what is no count, or an absurd one."""
    return int(text) if text.isdigit() and len(text) <= COUNT_DIGITS else None
