"""The figures of a run, as a table and as JSON."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from msgspec import json

from bench.measure import Figure

HEADINGS = ("what", "ours", "beside", "theirs", "ratio", "at best", "wanted", "")
MARKS = {True: "ok", False: "short", None: ""}


def print_table(groups: Mapping[str, Sequence[Figure]], notes: Sequence[str], *, is_judged: bool) -> None:
    lines = [cells(figure, is_judged=is_judged) for figures in groups.values() for figure in figures]
    if find_spec("rich"):
        _print_rich(lines)
    else:
        _print_plain(lines)
    for note in notes:
        print(note)


def cells(figure: Figure, *, is_judged: bool) -> tuple[str, ...]:
    return (
        figure.what,
        shown(figure.ours, figure.unit),
        figure.beside,
        "" if figure.other is None else shown(figure.other, figure.unit),
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        "" if figure.best is None else f"{figure.best:.2f}",
        "" if figure.wanted is None else str(figure.wanted),
        MARKS[figure.is_met] if is_judged else "",
    )


def shown(value: float, unit: str) -> str:
    digits = 0 if value >= 100 or float(value).is_integer() else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def _print_rich(lines: Sequence[tuple[str, ...]]) -> None:
    console, table = import_module("rich.console"), import_module("rich.table").Table()
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in ("ours", "theirs", "ratio", "at best", "wanted") else "left", no_wrap=True)
    for line in lines:
        table.add_row(*line, style="bold red" if line[-1] == "short" else "")
    # Wide enough wherever it is printed: a cell that is cut off says nothing.
    console.Console(width=max(console.Console().width, 170)).print(table)


def _print_plain(lines: Sequence[tuple[str, ...]]) -> None:
    rows = [HEADINGS, *lines]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def write_json(path: Path, groups: Mapping[str, Sequence[Figure]], notes: Sequence[str], *, is_judged: bool) -> None:
    figures = [
        {"group": group, **as_facts(figure), "met": figure.is_met if is_judged else None}
        for group, all_of in groups.items()
        for figure in all_of
    ]
    path.write_bytes(json.format(json.encode({"judged": is_judged, "notes": notes, "figures": figures}), indent=2))


def as_facts(figure: Figure) -> dict[str, object]:
    facts: dict[str, object] = json.decode(json.encode(figure))
    return facts | {"wanted": None if figure.wanted is None else str(figure.wanted)}
