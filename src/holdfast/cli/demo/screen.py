"""How the demo looks: live on a terminal, as plain lines elsewhere, and as nothing but JSON."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from msgspec import json

from holdfast.cli.demo.scene import Mood, Scene, WorkerView
from holdfast.cli.demo.tally import Tally

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

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


class Screen(Protocol):
    """Where the plot tells its story."""

    def showing(self, scene: Scene) -> "AbstractContextManager[None]":
        """Show the scene as it changes."""
        ...

    def tell(self, at_s: float, line: str, mood: Mood) -> None:
        """Say a line of the story."""
        ...

    def close(self, scene: Scene, tally: Tally) -> None:
        """Show how it ended."""
        ...


def verdict(tally: Tally) -> str:
    """The moral in one line."""
    if tally.exit_code:
        return "This should not have happened: please report it with the seed you used."
    return "Nothing was lost, and nothing was accepted twice."


class JsonScreen:
    """No show: the counts, at the end."""

    @contextmanager
    def showing(self, scene: Scene) -> Iterator[None]:
        del scene
        yield

    def tell(self, at_s: float, line: str, mood: Mood) -> None:
        """Say nothing."""

    def close(self, scene: Scene, tally: Tally) -> None:
        del scene
        sys.stdout.write(json.encode(tally).decode() + "\n")


class PlainScreen:
    """A line for everything worth telling."""

    @contextmanager
    def showing(self, scene: Scene) -> Iterator[None]:
        del scene
        yield

    def tell(self, at_s: float, line: str, mood: Mood) -> None:
        del mood
        self._print(f"{at_s:5.1f} s  {line}")

    def close(self, scene: Scene, tally: Tally) -> None:
        self._print("")
        for view in scene.workers.values():
            self._print(f"{view.done:7}  done by {view.name}: {view.fate}")
        self._print("")
        for name, meaning in counts_of(tally):
            self._print(f"{getattr(tally, name):7}  {meaning}")
        self._print("")
        self._print(verdict(tally))
        self._print(NEXT)

    def _print(self, line: str) -> None:
        sys.stdout.write(line.rstrip() + "\n")
        sys.stdout.flush()


class LiveScreen:
    """The story above, and below it bars and workers that move."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False)

    @contextmanager
    def showing(self, scene: Scene) -> Iterator[None]:
        from rich.live import Live

        with Live(console=self._console, get_renderable=lambda: self._picture(scene), refresh_per_second=12, transient=True):
            yield

    def tell(self, at_s: float, line: str, mood: Mood) -> None:
        from rich.text import Text

        self._console.print(Text.assemble((f"{at_s:5.1f} s  ", "dim"), (line, STYLES[mood])))

    def close(self, scene: Scene, tally: Tally) -> None:
        from rich.text import Text

        self._console.print()
        self._console.print(self._counts(tally))
        self._console.print()
        self._console.print(self._fates(scene))
        self._console.print()
        self._console.print(Text(verdict(tally), style=STYLES["bad" if tally.exit_code else "good"]))
        self._console.print(NEXT)

    def _picture(self, scene: Scene) -> "RenderableType":
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        bars = Table.grid(padding=(0, 2))
        for label, number in (("put", scene.put), ("done", len(scene.done))):
            bars.add_row(label, ProgressBar(scene.messages, number, width=40, complete_style="green"), f"{number}/{scene.messages}")
        return Group("", bars, "", self._workers(scene))

    def _workers(self, scene: Scene) -> "Table":
        table = self._table("now", 64)
        for view in scene.workers.values():
            table.add_row(view.name, str(view.done), describe(view), style=STYLES[view.mood])
        return table

    def _fates(self, scene: Scene) -> "Table":
        table = self._table("in the end", 0)
        for view in scene.workers.values():
            table.add_row(view.name, str(view.done), view.fate, style=STYLES["bad" if view.mood == "bad" else "plain"])
        return table

    def _table(self, last: str, width: int) -> "Table":
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        table.add_column("worker", no_wrap=True)
        table.add_column("done", justify="right")
        # A fixed width: the table must not jump while it changes.
        table.add_column(last, min_width=width)
        return table

    def _counts(self, tally: Tally) -> "Table":
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        table.add_column("count", justify="right")
        table.add_column("what")
        for name, meaning in counts_of(tally):
            table.add_row(str(getattr(tally, name)), meaning)
        return table


def counts_of(tally: Tally) -> list[tuple[str, str]]:
    """What the closing table shows; time that was not up needs no line."""
    return [(name, meaning) for name, meaning in COUNTS.items() if name != "unfinished" or tally.unfinished]


def describe(view: WorkerView) -> str:
    """What a worker is doing, and how long its claim still lasts if nobody renews it."""
    if view.lease_ends_at is None:
        return view.doing
    left_s = view.lease_ends_at - time.monotonic()
    return f"{view.doing}; " + (f"its lease ends in {left_s:.1f} s" if left_s > 0 else "its lease has ended")


def for_terminal() -> Screen:
    """The screen that suits what standard output is."""
    from rich.console import Console

    return LiveScreen() if sys.stdout.isatty() and not Console().is_dumb_terminal else PlainScreen()
