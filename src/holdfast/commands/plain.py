"""Decides which commands a fast path may take: fields that it does not list must have their defaults.

So a field that was forgotten here is never dropped: a command that uses it takes the full rules.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

Form = tuple[Callable[[Any], Any], Any]
"""Reads the fields that a fast path does not know, and what they are if they are not used."""

_forms: dict[tuple[type[Struct], tuple[str, ...]], Form] = {}


def uses_only(kind: type[Struct], *known: str) -> Callable[[Any], bool]:
    """Whether a struct of this kind uses no other fields than these."""
    read, default = _form(kind, known)
    return lambda struct: read(struct) == default


def is_plain(struct: Any, also: tuple[str, ...]) -> bool:
    """Whether a struct uses only the `plain_fields` of its type, and `also` these."""
    read, default = _forms.get((type(struct), also)) or _plain_form(type(struct), also)
    return bool(read(struct) == default)


def are_plain(structs: Sequence[Any], also: tuple[str, ...]) -> bool:
    """Whether each of these, which are of one type, is plain."""
    if not structs:
        return True
    read, default = _forms.get((type(structs[0]), also)) or _plain_form(type(structs[0]), also)
    return list(map(read, structs)).count(default) == len(structs)


def _plain_form(kind: Any, also: tuple[str, ...]) -> Form:
    form = _forms[kind, also] = _form(kind, (*kind.plain_fields, *also))
    return form


def _form(kind: type[Struct], known: tuple[str, ...]) -> Form:
    others = {field.name: field.default for field in fields(kind) if field.name not in known}
    if not others:
        return (lambda _: None), None
    return attrgetter(*others), tuple(others.values()) if len(others) > 1 else next(iter(others.values()))
