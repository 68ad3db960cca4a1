"""The server's log format: one line per event, as text or JSON."""

import logging
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import json

from holdfast.server.layers import telemetry

Form = Literal["text", "json"]


class JsonLines(logging.Formatter):
    """One JSON object a line; what a record brings as `fields` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.encode(line, enc_hook=str).decode()


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
