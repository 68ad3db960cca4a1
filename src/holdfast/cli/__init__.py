"""The entry point of the command `holdfast`; each subcommand has its own module."""

import os
import signal
import sys
from typing import Any

from holdfast import __version__

EXTRA = {"typer", "click", "rich"}


def main() -> None:
    """Run the command line; without the `cli` extra, say what to install and exit with 2."""
    if sys.argv[1:] == ["--version"]:
        # Answered before anything heavy is imported: scripts ask this often.
        sys.stdout.write(f"holdfast {__version__}\n")
        return
    try:
        app = loaded()
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRA:
            raise
        sys.stderr.write("The holdfast command needs its extra: pip install 'holdfast[cli]'\n")
        sys.exit(2)
    if "_HOLDFAST_COMPLETE" in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]  # it is where typer uses it

        completion_init()
    app(prog_name="holdfast")


def loaded() -> Any:
    """The application. Nothing is held yet, so a Ctrl-C meanwhile ends the program at once, without the traceback of an import."""
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from holdfast.cli.app import app
    finally:
        if is_heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    return app
