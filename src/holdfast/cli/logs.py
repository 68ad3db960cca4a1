"""The log of commands that run until they are stopped, on standard error."""

import logging
from typing import Annotated

import typer

LogJson = Annotated[bool, typer.Option("--json", help="Log one JSON object per line.")]


def log_to_stderr(level: str = "INFO", *, as_json: bool) -> None:
    """Log lines of text, or of JSON."""
    from holdfast.server.log_lines import JsonLines

    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
