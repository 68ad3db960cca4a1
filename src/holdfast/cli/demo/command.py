"""The command `holdfast demo`."""

import signal
from pathlib import Path
from tempfile import gettempdir
from types import FrameType
from typing import Annotated

import typer

from holdfast.cli.owner import act_as_owner_of
from holdfast.errors import MissingExtra

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


def serve_dashboard(url: str) -> None:
    """Serve a store and print the address of its dashboard, until a signal ends it."""
    from holdfast.connect import connect

    try:
        from holdfast.server.app import ControlPlane, Options
        from holdfast.server.process.network_policy import Exposure
        from holdfast.server.process.uvicorn_server import Server, serving
    except ModuleNotFoundError as missing:
        raise MissingExtra(f"--dashboard needs the package {missing.name!r}: pip install 'holdfast[server]'") from None
    with serving(Server(ControlPlane(connect(url), Options()), Exposure(port=0))) as address:
        typer.echo(f"The dashboard of this demo: {address}/  (Ctrl-C ends it)", err=True)
        signal.pause()


def demo(
    *,
    messages: Annotated[int, typer.Option(min=4, max=500, help="How many messages are put.")] = 120,
    workers: Annotated[int, typer.Option(min=3, max=16, help="How many worker processes share them.")] = 4,
    seed: Annotated[int, typer.Option(help="Chooses which messages bring trouble.")] = 1,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Then serve the demo's data, and print the address of its dashboard, until Ctrl-C.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the counts, as JSON.")] = False,
) -> None:
    """Show workers being killed and paused while no message is lost."""
    from holdfast.cli.demo import output, run

    act_as_owner_of(Path(gettempdir()))
    for number in SIGNALS:
        signal.signal(number, interrupt)
    try:
        shown = output.JsonOutput() if as_json else output.for_terminal()
        then = serve_dashboard if dashboard else None
        counts = run.run_demo(shown, messages=messages, workers=workers, seed=seed, then=then)
    except Interrupted as interrupted:
        typer.echo("Stopped: its processes have ended and its files are gone.", err=True)
        raise typer.Exit(128 + interrupted.number) from None
    except run.ProcessFailed as failed:
        typer.echo(f"The demo failed: {failed}.", err=True)
        raise typer.Exit(1) from None
    raise typer.Exit(counts.exit_code)
