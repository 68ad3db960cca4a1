"""How far a command has come, on standard error: a bar on a terminal, and with `--progress` lines anywhere else."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Protocol

import typer

Lines = Annotated[bool, typer.Option("--progress", help="Show how far it has come also where standard error is no terminal, line by line.")]

EVERY_S: Final = 1.0
"""How often there is a line."""


class Show(Protocol):
    """Moves the bar on."""

    def __call__(self, done: int, total: int | None = None, what: str | None = None) -> None: ...


@contextmanager
def progress_bar(what: str, *, lines: bool = False, quiet: bool = False) -> Iterator[Show]:
    """Show how far a command has come while the block runs: on a terminal unless `quiet`, and with `lines` in any case."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if lines and not console.is_terminal:
        told = ProgressLines(what, lambda line: typer.echo(line, err=True))
        yield told.show
        told.end()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal or (quiet and not lines)) as bar:
        task = bar.add_task(escape(what), total=None, visible=False)

        def show(done: int, total: int | None = None, what: str | None = None) -> None:
            bar.update(task, visible=True, completed=done, total=total, description=escape(what) if what else None)

        yield show


class ProgressLines:
    """A line when it begins to count, then one now and then, and one at the end."""

    def __init__(self, what: str, say: Callable[[str], object], now_s: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._say = say
        self._now_s = now_s
        self._said_at = -math.inf
        self._line = ""
        self._is_said = True

    def show(self, done: int, total: int | None = None, what: str | None = None) -> None:
        """See `Show`."""
        self._what = what or self._what
        self._line = f"{self._what}: {done:,}{'' if total is None else f' of {total:,}'}"
        self._is_said = False
        if self._now_s() >= self._said_at + EVERY_S:
            self._said_at = self._now_s()
            self.end()

    def end(self) -> None:
        """Say what was not said yet."""
        if not self._is_said:
            self._is_said = True
            self._say(self._line if self._line.isprintable() else ascii(self._line)[1:-1])
