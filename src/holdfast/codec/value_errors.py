"""Errors for values that cannot be encoded: the path inside the value, and the remedy."""

from typing import TypeAlias

# The way from the root to a part: (way to its container, key or index), None at the root. A pair
# costs the walk next to nothing; it becomes text only when something is refused.
Where: TypeAlias = tuple["Where", object] | None

IN_SET = object()
_RECORD_MARKS = ("__struct_fields__", "__dataclass_fields__", "__attrs_attrs__", "model_dump")


class Unfit(Exception):  # noqa: N818 - never leaves the codec
    """A scalar of a type that has a tagged form, but with something the form cannot keep."""


def refusal(where: Where, reason: str) -> TypeError:
    """Make the error for the part of a value found at `where`."""
    return TypeError(f"value at {path(where)}: {reason}")


def path(where: Where) -> str:
    """Give the text of a way, such as `$.items[2]`."""
    steps: list[str] = []
    while where is not None:
        where, step = where
        steps.append(_step(step))
    return "$" + "".join(reversed(steps))


def why_not_plain(value: object, plain: frozenset[type], where: Where) -> str:
    """Say why a value of an unknown type is refused, and what to do instead."""
    kind = type(value)
    name = kind.__name__
    if any(hasattr(kind, mark) for mark in _RECORD_MARKS):
        hint = f"type={name}" if where is None else f"a type= that holds {name}"
        return f"{name} is not plain data; give the queue or dict {hint}"
    base = next((base for base in kind.__mro__ if base in plain), None)
    if base is not None:
        return f"{name} would come back as {base.__name__}; convert it first"
    return f"{name} is not plain data; convert it first"


def _step(step: object) -> str:
    if step is IN_SET:
        return "{}"
    if isinstance(step, str):
        return f".{step}" if step.isidentifier() else f"[{step[:40]!a}]"
    if type(step) in {int, float, bool}:
        return f"[{step}]"
    # Its repr may be long, or code of the caller's that fails.
    return f"[{type(step).__name__}]"
