"""What every policy is: values behind a name, which can describe themselves."""

from dataclasses import fields
from typing import Any, ClassVar, Protocol


class Policy(Protocol):
    """Anything that describes itself."""

    def as_dict(self) -> dict[str, object]:
        """The policy as plain data."""


class Described:
    """A policy of ours, a dataclass.

    Where several policies have the same fields, each gives its values as a row of a table: `class Name(Fields, values=(…)):`.
    """

    kind: ClassVar[dict[str, object]] = {}
    """What is described before the fields."""
    shown: ClassVar[tuple[str, ...]] = ()
    """What is described in place of the fields."""

    def __init_subclass__(cls, values: tuple[object, ...] = ()) -> None:
        super().__init_subclass__()
        if values:
            types = {field.name: field.type for field in fields(cls)}  # type: ignore[arg-type] # of the dataclass with the fields
            for name, value in zip(types, values, strict=True):
                setattr(cls, name, value)
            # Without an annotation of the class's own, its decorator would take the default of the class above.
            cls.__annotations__.update(types)

    def as_dict(self) -> dict[str, object]:
        """The values, policies inside it as dicts, and stores by the name of their type."""
        names = self.shown or [field.name for field in fields(self)]  # type: ignore[arg-type] # dataclasses all
        return {**self.kind, **{name: plain(getattr(self, name)) for name in names}}


def plain(value: Any) -> Any:
    """A value of a policy as plain data."""
    if value is None or isinstance(value, str | int | float):
        return value
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return list(value) if isinstance(value, tuple) else type(value).__name__
