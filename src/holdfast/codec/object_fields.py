"""The valid objects of arguments that no store keeps: of one class, or functions."""

from msgspec import Struct

from holdfast.codec.limits import shown


class Instance(Struct, frozen=True):
    """An object of one class."""

    name: str
    kind: type
    optional: bool = False

    def check(self, value: object) -> object:
        if isinstance(value, self.kind) or (value is None and self.optional):
            return value
        raise TypeError(f"{self.rule}, not {shown(value)} ({type(value).__name__})")

    @property
    def rule(self) -> str:
        return f"{self.name} must be a {self.kind.__name__}{' or None' if self.optional else ''}"


class Function(Struct, frozen=True):
    """A function, or what else can be called."""

    name: str
    optional: bool = True

    def check(self, value: object) -> object:
        if callable(value) or (value is None and self.optional):
            return value
        raise TypeError(f"{self.name} must be a function{' or None' if self.optional else ''}, not {shown(value)} ({type(value).__name__})")
