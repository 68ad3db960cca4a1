"""Results of commands: JSON for scripts, and plain tables for people, whose cells stay one line and send nothing to the terminal."""

from collections.abc import Sequence
from datetime import UTC, datetime

import typer
from msgspec import json


def print_result(value: object, text: str, *, as_json: bool) -> None:
    """Print a result as JSON, or as text."""
    typer.echo(json.encode(value).decode() if as_json else text)


def shown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows under their heads, in columns."""
    cells = [[_plain(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)


def moment(seconds: float | None) -> str:
    """A moment of the wall clock."""
    return "never" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def moment_at(when: datetime | None) -> str:
    """The same as a cell of a table, which is empty where there is none."""
    return "" if when is None else moment(when.timestamp())


def _plain(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]
