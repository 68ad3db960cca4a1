"""Plain tables for people; whatever a cell holds, it stays one line and sends nothing to the terminal."""

from collections.abc import Sequence
from datetime import UTC, datetime


def shown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows under their heads, in columns."""
    cells = [[_plain(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)


def moment(seconds: float | None) -> str:
    """A moment of the wall clock."""
    return "never" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _plain(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]
