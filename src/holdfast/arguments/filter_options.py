"""The options by which messages are found."""

from collections.abc import Hashable
from typing import Any, Final

from holdfast.arguments.options import refuse_unknown
from holdfast.arguments.where import Where
from holdfast.codec import key_prefix
from holdfast.commands import Filter


class FilterOptions(Where, total=False):
    """Which messages are meant, and where the store is. What is left out does not narrow."""

    older_than_s: float | None
    """So long ago a dead letter was buried, and any other message was put, or longer."""
    newer_than_s: float | None
    """So long ago at most."""
    error_contains: str | None
    """A part of the last error."""
    error_class: str | None
    """The last error's text up to the first colon."""
    value_contains: str | None
    """A part of the value's JSON text."""
    prefix: str | tuple[Hashable, ...] | None
    """How the key begins."""
    label: str | None
    """One of the labels."""
    group: str | None
    """The group, "" for messages without one."""


OPTIONS: Final = frozenset(FilterOptions.__annotations__)
PLACE: Final = frozenset(Where.__annotations__)


def filter_of(call: str, options: FilterOptions) -> tuple[Filter, Where]:
    """The filter that the options of a call make, and where its store is."""
    refuse_unknown(call, options, OPTIONS)
    fields: dict[str, Any] = dict(options)
    where: Any = {name: fields.pop(name) for name in PLACE & fields.keys()}
    prefix = fields.pop("prefix", None)
    return Filter(**fields, key_prefix=None if prefix is None else key_prefix(prefix)), where
