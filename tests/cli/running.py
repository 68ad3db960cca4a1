"""The command line, run in this process."""

from typing import Any

from typer.testing import CliRunner

from holdfast.cli.app import app


def holdfast(*arguments: str, **settings: str | None) -> Any:
    """What the command printed, and its exit code; in an environment without a URL unless `settings` have one."""
    return CliRunner().invoke(app, arguments, prog_name="holdfast", env={"HOLDFAST_URL": None, "COLUMNS": "120", **settings})
