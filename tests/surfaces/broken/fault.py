"""Faults of the systems whose APIs the surfaces have, built in on purpose."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Fault(Struct, frozen=True):
    """What is broken, how, and the test that must notice."""

    name: str
    target: Any
    attribute: str
    breaks: Any
    """Made of what was there: takes its place."""
    noticed_by: Callable[..., Any]


def instead(value: Any) -> Any:
    return lambda _: value
