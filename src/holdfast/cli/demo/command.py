"""The command `holdfast demo`."""

import signal
from pathlib import Path
from tempfile import gettempdir
from types import FrameType
from typing import Annotated

import typer

from holdfast.cli.owner import act_as_owner_of

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked the demo to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def interrupt(number: int, frame: FrameType | None) -> None:
    """Leave the demo by the way that cleans up, undisturbed by further signals."""
    del frame
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(number)


def demo(
    *,
    messages: Annotated[int, typer.Option(min=4, max=500, help="How many messages are put.")] = 120,
    workers: Annotated[int, typer.Option(min=3, max=16, help="How many worker processes share them.")] = 4,
    seed: Annotated[int, typer.Option(help="Chooses which messages bring trouble.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the counts, as JSON.")] = False,
) -> None:
    """Show workers being killed and paused while no message is lost."""
    from holdfast.cli.demo import output, run

    act_as_owner_of(Path(gettempdir()))
    for number in SIGNALS:
        signal.signal(number, interrupt)
    try:
        counts = run.run_demo(output.JsonOutput() if as_json else output.for_terminal(), messages=messages, workers=workers, seed=seed)
    except Interrupted as interrupted:
        typer.echo("Stopped: its processes have ended and its files are gone.", err=True)
        raise typer.Exit(128 + interrupted.number) from None
    except run.ProcessFailed as failed:
        typer.echo(f"The demo failed: {failed}.", err=True)
        raise typer.Exit(1) from None
    raise typer.Exit(counts.exit_code)
