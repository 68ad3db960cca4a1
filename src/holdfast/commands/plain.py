"""Decides which commands a fast path may take: fields that it does not list must have their defaults.

So a field that nobody thought of is never dropped: a command that uses it takes the full rules.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import fields


def uses_only(kind: type[Struct], *known: str) -> Callable[[Any], bool]:
    """Whether a struct of this kind uses no other fields than these."""
    others = {field.name: field.default for field in fields(kind) if field.name not in known}
    if not others:
        return lambda _: True
    read = attrgetter(*others)
    default = tuple(others.values()) if len(others) > 1 else next(iter(others.values()))
    return lambda struct: read(struct) == default


Form = tuple[type[Struct], tuple[str, ...]]

_forms: dict[Form, Callable[[Any], bool]] = {}


def is_plain(struct: Any, also: tuple[str, ...]) -> bool:
    """Whether a struct uses only the `plain_fields` of its type, and `also` these."""
    form = (type(struct), also)
    known = _forms.get(form)
    if known is None:
        known = _forms[form] = uses_only(type(struct), *struct.plain_fields, *also)
    return known(struct)
