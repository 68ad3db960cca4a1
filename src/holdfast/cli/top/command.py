"""The command `holdfast top`."""

import sys
import time
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Final

import typer

from holdfast.cli.opening import AsJson, StoreUrl, connected
from holdfast.cli.queue.messages import line
from holdfast.cli.showing import shown
from holdfast.cli.top.picture import Picture, QueueRow, Rates, take_picture
from holdfast.wording import counted, seconds

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions, RenderableType

QUEUE_HEADS: Final = ("queue", "ready", "delayed", "leased", "buffered", "dead", "oldest ready", "put/s", "done/s", "failed", "workers")
WIDE: Final = 110
LEFT_OUT: Final = ("delayed", "buffered", "put/s")
"""What a terminal of fewer characters has no room for."""
WORKER_HEADS: Final = ("worker", "state", "running", "done", "failed", "queues")


def top(
    prefix: Annotated[str, typer.Argument(help="Only queues whose name begins so.")] = "",
    *,
    interval_s: Annotated[float, typer.Option(min=0.1, max=3_600, help="How often it looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show queues and workers, those queues first that wait longest, until Ctrl-C.

    Of the first 50 queues it shows what was put and done per second in the last minute, and the share of claims that failed.
    With --json it prints one object per look, and where its output is no terminal one table per look; for a script add --once.
    """
    with connected(url) as client:
        rates = Rates(client)
        if once or as_json or not sys.stdout.isatty():
            while True:
                picture = take_picture(client, prefix, rates)
                typer.echo(line(picture) if as_json else as_text(picture))
                if once:
                    return
                time.sleep(interval_s)
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(), screen=True, auto_refresh=False) as live:
            while True:
                live.update(as_table(take_picture(client, prefix, rates), live.console.size), refresh=True)
                time.sleep(interval_s)


def as_text(picture: Picture) -> str:
    """The picture in plain columns."""
    parts = [_title(picture), shown(QUEUE_HEADS, queue_rows(picture)), shown(WORKER_HEADS, worker_rows(picture))]
    return "\n\n".join(parts)


def as_table(picture: Picture, size: "ConsoleDimensions") -> "RenderableType":
    """The picture for a terminal of this size: as many queues, and of what is said of them as much, as there is room for."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    room = max(3, size.height - 8 - min(len(picture.workers), 8))
    tables = []
    for heads, rows, most in ((QUEUE_HEADS, queue_rows(picture), room), (WORKER_HEADS, worker_rows(picture), 8)):
        table = Table(box=None, pad_edge=False, header_style="bold")
        is_shown = [size.width >= WIDE or head not in LEFT_OUT for head in heads]
        for head in compress(heads, is_shown):
            table.add_column(head, justify="left" if head in ("queue", "worker", "state", "queues") else "right", no_wrap=True)
        for row in rows[:most]:
            table.add_row(*(Text(cell if cell.isprintable() else ascii(cell)[1:-1]) for cell in compress(row, is_shown)))
        tables.append(table)
    return Group(Text(_title(picture), style="bold"), "", tables[0], "", tables[1])


def _title(picture: Picture) -> str:
    ready = sum(row.ready for row in picture.queues)
    counts = f"{counted(len(picture.queues), 'queue')}, {ready:,} ready, {counted(len(picture.workers), 'worker')}"
    return f"{picture.url}  {picture.at:%H:%M:%SZ}  {counts}"


def queue_rows(picture: Picture) -> list[tuple[str, ...]]:
    """The rows of queues."""
    return [_row(row) for row in picture.queues]


def _row(row: QueueRow) -> tuple[str, ...]:
    oldest = "" if row.oldest_ready_s is None else seconds(row.oldest_ready_s)
    numbers = (row.ready, row.delayed, row.leased, row.buffered, row.dead)
    rates = ("" if rate is None else f"{rate:,.1f}" for rate in (row.put_per_s, row.done_per_s))
    failed = "" if row.failed_share is None else f"{row.failed_share:.1%}"
    return (row.name, *(f"{number:,}" for number in numbers), oldest, *rates, failed, str(row.workers))


def worker_rows(picture: Picture) -> list[tuple[str, ...]]:
    """The rows of workers."""
    return [
        (row.name, row.state, f"{row.running}/{row.concurrency}", f"{row.done:,}", f"{row.failed:,}", ", ".join(row.queues))
        for row in picture.workers
    ]
