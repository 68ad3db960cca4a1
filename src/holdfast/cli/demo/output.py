"""How the demo looks: live on a terminal, as plain lines elsewhere, and as nothing but JSON."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from msgspec import json

from holdfast.cli.demo.counts import Counts
from holdfast.cli.demo.progress import Progress, Tone, WorkerView

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

STYLES = {"plain": "", "good": "green", "bad": "bold red", "odd": "yellow"}

COUNTS = {
    "put": "messages put",
    "done": "done",
    "redelivered": "delivered again, after a lease ended",
    "refused": "refused, tried with a lost claim",
    "unfinished": "unfinished when the time was up",
    "lost": "lost",
    "accepted_twice": "accepted twice",
}


NEXT = (
    "Read next: the tutorial (docs/tutorial/index.md) and workers (docs/howto/workers.md). This demo's worker: holdfast/cli/demo/worker.py."
)


def verdict(counts: Counts) -> str:
    """The result in one line."""
    if counts.exit_code:
        return "This should not have happened: please report it with the seed you used."
    return "Nothing was lost, and nothing was accepted twice."


class JsonOutput:
    """Only the counts, at the end; the methods are those of `LiveOutput`."""

    def showing(self, progress: Progress) -> AbstractContextManager[None]:
        del progress
        return nullcontext()

    def tell(self, at_s: float, line: str, tone: Tone) -> None:
        pass

    def close(self, progress: Progress, counts: Counts) -> None:
        del progress
        sys.stdout.write(json.encode(counts).decode() + "\n")


class TextOutput:
    """One line for each thing that happens; the methods are those of `LiveOutput`."""

    def showing(self, progress: Progress) -> AbstractContextManager[None]:
        del progress
        return nullcontext()

    def tell(self, at_s: float, line: str, tone: Tone) -> None:
        del tone
        self._print(f"{at_s:5.1f} s  {line}")

    def close(self, progress: Progress, counts: Counts) -> None:
        done = [f"{view.done:7}  done by {view.name}: {view.outcome}" for view in progress.workers.values()]
        self._print("", *done, "", *(f"{number:7}  {meaning}" for number, meaning in rows_of(counts)), "", verdict(counts), NEXT)

    def _print(self, *lines: str) -> None:
        sys.stdout.write("".join(line.rstrip() + "\n" for line in lines))
        sys.stdout.flush()


class LiveOutput:
    """What happened above, and below it progress bars and workers, redrawn as they change."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False)

    @contextmanager
    def showing(self, progress: Progress) -> Iterator[None]:
        """Show the progress as it changes."""
        from rich.live import Live

        with Live(console=self._console, get_renderable=lambda: self._picture(progress), refresh_per_second=12, transient=True):
            yield

    def tell(self, at_s: float, line: str, tone: Tone) -> None:
        """Report something that happened."""
        from rich.text import Text

        self._console.print(Text.assemble((f"{at_s:5.1f} s  ", "dim"), (line, STYLES[tone])))

    def close(self, progress: Progress, counts: Counts) -> None:
        """Show how it ended."""
        from rich.text import Text

        counted = [(str(number), meaning, "") for number, meaning in rows_of(counts)]
        views = progress.workers.values()
        workers = [(view.name, str(view.done), view.outcome, STYLES["bad"] if view.tone == "bad" else "") for view in views]
        result = Text(verdict(counts), style=STYLES["bad" if counts.exit_code else "good"])
        for shown in ("", table(["count", "what"], counted), "", table(["worker", "done", "in the end"], workers), "", result, NEXT):
            self._console.print(shown)

    def _picture(self, progress: Progress) -> "RenderableType":
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        bars = Table.grid(padding=(0, 2))
        for label, number in (("put", progress.put), ("done", len(progress.done))):
            bars.add_row(label, ProgressBar(progress.messages, number, width=40, complete_style="green"), f"{number}/{progress.messages}")
        workers = [(view.name, str(view.done), describe(view), STYLES[view.tone]) for view in progress.workers.values()]
        # A fixed width: the table must not jump while it changes.
        return Group("", bars, "", table(["worker", "done", "now"], workers, width=64))


Output = JsonOutput | TextOutput | LiveOutput


def table(headings: list[str], rows: Iterable[tuple[str, ...]], width: int = 0) -> "Table":
    """A table whose last column has at least this width; the last of each row is its style."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in headings:
        made.add_column(heading, justify="right" if heading in ("count", "done") else "left", no_wrap=heading == "worker")
    made.columns[-1].min_width = width
    for *cells, style in rows:
        made.add_row(*cells, style=style)
    return made


def rows_of(counts: Counts) -> list[tuple[int, str]]:
    """What the closing table shows; time that was not up needs no line."""
    shown = {name: meaning for name, meaning in COUNTS.items() if name != "unfinished" or counts.unfinished}
    return [(getattr(counts, name), meaning) for name, meaning in shown.items()]


def describe(view: WorkerView) -> str:
    """What a worker is doing, and how long its claim still lasts if it is not renewed."""
    if view.lease_ends_at is None:
        return view.doing
    left_s = view.lease_ends_at - time.monotonic()
    return f"{view.doing}; " + (f"its lease ends in {left_s:.1f} s" if left_s > 0 else "its lease has ended")


def for_terminal() -> Output:
    """The output that suits what standard output is."""
    from rich.console import Console

    return LiveOutput() if sys.stdout.isatty() and not Console().is_dumb_terminal else TextOutput()
