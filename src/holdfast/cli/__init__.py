"""The entry point of the command `holdfast`; each subcommand has its own module."""

import os
import sys

from holdfast import __version__

EXTRA = {"typer", "click", "rich"}


def main() -> None:
    """Run the command line; without the `cli` extra, say what to install and exit with 2."""
    if sys.argv[1:] == ["--version"]:
        # Answered before anything heavy is imported: scripts ask this often.
        sys.stdout.write(f"holdfast {__version__}\n")
        return
    try:
        from holdfast.cli.app import app
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRA:
            raise
        sys.stderr.write("The holdfast command needs its extra: pip install 'holdfast[cli]'\n")
        sys.exit(2)
    if "_HOLDFAST_COMPLETE" in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]  # it is where typer uses it

        completion_init()
    app(prog_name="holdfast")
