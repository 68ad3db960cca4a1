"""Shared by file stores: turns to write, hints between processes, and the store around them."""

from typing import Literal

Durability = Literal["power", "process"]
"""What a commit survives: a loss of power, or the death of every process."""
