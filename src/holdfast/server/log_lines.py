"""A log of which each line is a JSON object."""

import logging
from datetime import UTC, datetime
from typing import Any

from msgspec import json


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
