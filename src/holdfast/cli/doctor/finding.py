"""What `holdfast doctor` reports."""

from typing import Literal

from msgspec import Struct

Level = Literal["ok", "notice", "warning", "problem"]


class Finding(Struct, frozen=True):
    """One thing that was looked at: what was found, the evidence, and what to do about it."""

    level: Level
    about: str
    finding: str
    remedy: str = ""
