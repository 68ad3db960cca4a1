"""The server's log: one line per event, as text or JSON."""

import logging
from typing import Literal

from holdfast.server.layers import telemetry
from holdfast.server.log_lines import JsonLines

Form = Literal["text", "json"]


class TextLines(logging.Formatter):
    """A line of text; a line break inside a message is shown, not made."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


def set_up(form: Form, *, requests: bool) -> None:
    """Log to standard error, and every request too if `requests`."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    telemetry.log.setLevel(logging.INFO if requests else logging.WARNING)
