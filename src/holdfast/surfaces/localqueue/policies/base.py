"""What every policy is: values behind a name, which can describe themselves."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Protocol

PER_POLICY: Any = None
"""The default of a field for which each policy gives its own in its row."""


class Policy(Protocol):
    """Anything that describes itself."""

    def as_dict(self) -> dict[str, object]:
        """The policy as plain data."""


class Described:
    """A policy of ours, a dataclass.

    Where several policies have the same fields, each gives its values as a row of a table: `class Name(Fields, values=(…)):`. It describes
    itself by its `kind` and its fields, or in place of them by what `shown` names.
    """

    _kind: ClassVar[Mapping[str, object]] = {}
    _shown: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(
        cls, values: tuple[object, ...] = (), kind: Mapping[str, object] | None = None, shown: tuple[str, ...] = ()
    ) -> None:
        super().__init_subclass__()
        cls._kind, cls._shown = kind or cls._kind, shown or cls._shown
        if values:
            types = {field.name: field.type for field in fields(cls)}  # type: ignore[arg-type] # of the dataclass with the fields
            for name, value in zip(types, values, strict=True):
                setattr(cls, name, value)
            # Without an annotation of the class's own, its decorator would take the default of the class above.
            cls.__annotations__.update(types)

    def as_dict(self) -> dict[str, object]:
        """The values, policies inside it as dicts, and stores by the name of their type."""
        names = self._shown or [field.name for field in fields(self)]  # type: ignore[arg-type] # dataclasses all
        return {**self._kind, **{name: plain(getattr(self, name)) for name in names}}


def plain(value: Any) -> Any:
    """A value of a policy as plain data."""
    if value is None or isinstance(value, str | int | float):
        return value
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return list(value) if isinstance(value, tuple) else type(value).__name__
