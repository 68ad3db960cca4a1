"""Tagged forms: an object with one member whose name begins with `$`, for types that JSON lacks.

    b"hi"         {"$bytes": "aGk="}
    (1, 2)        {"$tuple": [1, 2]}
    {1: "a"}      {"$dict": [[1, "a"]]}

A caller's own dict whose only key starts with `$` takes the `$dict` form too, so that it cannot be
mistaken for a tag.
"""

from collections.abc import Callable, Collection
from math import isfinite
from types import NoneType
from typing import Any, Final

from holdfast.codec.scalars import INT_MAX, INT_MIN, SCALARS
from holdfast.codec.texts import TEXTS
from holdfast.codec.value_errors import IN_SET, Unfit, Where, refusal, why_not_plain

DEPTH: Final = 100

_CONTAINER_TAGS: dict[type, str] = {tuple: "$tuple", set: "$set", frozenset: "$frozenset"}
_PLAIN: frozenset[type] = frozenset({str, bool, NoneType, list, dict, *_CONTAINER_TAGS, *SCALARS})
_OTHER_CODECS = {"$msgpack": "MSGPACK", "$pickle": "PICKLE"}


class Tagger:
    """Translates values for a format that has JSON's types and those in `native`.

    `text` gives the format's own bytes, by which sets and the keys of `$dict` are put in order.
    """

    def __init__(self, native: frozenset[type], text: Callable[[object], bytes]) -> None:
        self._native = native | {bool, NoneType}
        self._text = text

    def tag(self, value: object, where: Where = None, room: int = DEPTH) -> object:
        """Give the value in forms that the format has; TypeError with the path for what has none."""
        kind = type(value)
        if kind in self._native:
            return value
        if kind in TEXTS:
            return _checked_text(value, where)  # type: ignore[arg-type]
        if kind in SCALARS:
            return _tag_scalar(value, where)
        if kind not in _PLAIN:
            raise refusal(where, why_not_plain(value, _PLAIN, where))
        if not room:
            raise refusal(where, f"more than {DEPTH} levels deep, or it contains itself")
        return self._tag_container(value, where, room - 1)

    def _tag_container(self, value: Any, where: Where, room: int) -> object:
        kind = type(value)
        if kind is dict:
            return self._tag_dict(value, where, room)
        if kind is list or kind is tuple:
            items = [self.tag(item, (where, index), room) for index, item in enumerate(value)]
            return items if kind is list else {"$tuple": items}
        members = [self.tag(item, (where, IN_SET), room) for item in value]
        return {_CONTAINER_TAGS[kind]: sorted(members, key=self._text)}

    def _tag_dict(self, value: dict[Any, object], where: Where, room: int) -> object:
        if all(type(key) in TEXTS for key in value) and not is_tagged(value):
            return {_checked_text(key, (where, key)): self.tag(item, (where, key), room) for key, item in value.items()}
        pairs = [[self.tag(key, (where, key), room), self.tag(item, (where, key), room)] for key, item in value.items()]
        return {"$dict": sorted(pairs, key=lambda pair: self._text(pair[0]))}


def untag(value: Any) -> Any:
    """Give back what a Tagger translated; ValueError for a form it never makes."""
    kind = type(value)
    if kind is list:
        return [untag(item) for item in value]
    if kind is not dict:
        return value
    if is_tagged(value):
        ((tag, form),) = value.items()
        return read_form(tag, form)
    return {key: untag(item) for key, item in value.items()}


def is_tagged(value: Collection[str]) -> bool:
    """Whether a dict with text keys has the shape of a tagged form."""
    return len(value) == 1 and next(iter(value)).startswith("$")


def read_form(tag: str, form: Any) -> Any:
    """Give the value that one tagged form stands for."""
    read = _READERS.get(tag)
    if read is None:
        raise ValueError(_why_unknown(tag))
    try:
        return read(form)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"stored value: {tag} form cannot be read: {error}") from error


def _checked_text(text: str, where: Where) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refusal(where, "text with a lone surrogate is not Unicode and cannot be stored") from None
    return str(text)


def _tag_scalar(value: Any, where: Where) -> object:
    kind = type(value)
    if (kind is int and INT_MIN <= value <= INT_MAX) or (kind is float and isfinite(value)):
        return value
    scalar = SCALARS[kind]
    try:
        return {scalar.tag: scalar.write(value)}
    except Unfit as unfit:
        raise refusal(where, str(unfit)) from None


def _why_unknown(tag: str) -> str:
    codec = _OTHER_CODECS.get(tag)
    if codec is not None:
        return f"stored value was written with codec {codec}; read it with that codec"
    return f"stored value has the unknown form {tag}; a newer version may have written it"


_READERS: dict[str, Callable[[Any], Any]] = {
    **{scalar.tag: scalar.read for scalar in SCALARS.values()},
    "$tuple": lambda form: tuple(untag(form)),
    "$set": lambda form: set(untag(form)),
    "$frozenset": lambda form: frozenset(untag(form)),
    "$dict": lambda form: {untag(key): untag(item) for key, item in form},
}
