"""What every policy is: a frozen set of values that can describe itself."""

from dataclasses import fields
from typing import Any, ClassVar


class Described:
    """A policy that tells its values; `kind` stands before them."""

    __slots__ = ()

    kind: ClassVar[dict[str, object]] = {}

    def as_dict(self) -> dict[str, object]:
        """The values, policies inside it as dicts, and stores by the name of their type."""
        return {**self.kind, **{field.name: told(getattr(self, field.name)) for field in fields(self)}}  # type: ignore[arg-type] # dataclasses all


def told(value: Any) -> Any:
    """A value of a policy as plain data."""
    if value is None or isinstance(value, str | int | float):
        return value
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return list(value) if isinstance(value, tuple) else type(value).__name__
