"""The metadata of a message: a JSON object, stored as received."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw, json

UNREADABLE: Final = "unreadable"
"""The key under which metadata that cannot be read is shown, as text: stores may hold some of before it was checked."""

logger: logging.Logger = logging.getLogger(__name__)

_decode = json.Decoder(dict[str, Any]).decode


def decode_metadata(metadata: Raw) -> dict[str, Any]:
    """The object; ValueError for anything else, and for one with a number or a text that cannot be read."""
    try:
        return _decode(metadata)
    except RecursionError:
        raise ValueError("nested too deeply to be read") from None


def read_metadata(metadata: Raw) -> dict[str, Any]:
    """The object, whatever is stored: what cannot be read is a text under `unreadable`."""
    try:
        return decode_metadata(metadata)
    except ValueError:
        return {UNREADABLE: bytes(metadata).decode(errors="replace")}


def readable_metadata(metadata: Raw, queue: object, message_id: str) -> Raw:
    """The metadata as it is, or, where it cannot be read, an object with it as a text, which the log then says."""
    facts = read_metadata(metadata)
    if facts.keys() != {UNREADABLE}:
        return metadata
    logger.warning("the metadata of message %r of queue %r cannot be read; it is kept as text under %r", message_id, queue, UNREADABLE)
    return Raw(json.encode(facts))


def with_letter(metadata: Raw | None, report: Mapping[str, object], message_id: str) -> Raw:
    """A dead letter's metadata: what was put beside the value, readable or not, and the report on where it comes from and why."""
    known: dict[str, object] = {}
    if metadata:
        known |= json.decode(readable_metadata(metadata, report["queue"], message_id), type=dict[str, Raw])
    return Raw(json.encode(known | {"dead_letter": report}, order="sorted"))
