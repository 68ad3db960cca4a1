"""The limit on the size of one result; reads stop there."""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from holdfast.codec.limits import DEFAULT_LIMITS
from holdfast.commands.refusal_errors import answer_too_large
from holdfast.errors import Refused


class Sized(Protocol):
    """A record that knows how long it is."""

    @property
    def size_bytes(self) -> int: ...


S = TypeVar("S", bound=Sized)

ANSWER_BYTES: Final = DEFAULT_LIMITS.answer_bytes


class Allowance:
    """What the answer to one command, a step too, may still bring; with None as much as there is."""

    __slots__ = ("_most", "_used", "is_cut")

    def __init__(self, most: int | None = ANSWER_BYTES) -> None:
        self._most = most
        self._used = 0
        self.is_cut: bool = False
        """Whether the last records that were asked for did not all fit."""

    def fitting(self, records: Iterable[S]) -> list[S]:
        """The first of the records that fit; at least one of them, but refused where a step has brought too much before."""
        self.is_cut = False
        if self._most is None:
            return list(records)
        found: list[S] = []
        for record in records:
            size = record.size_bytes
            if self._used and self._used + size > self._most:
                if not found:
                    raise answer_too_large()
                self.is_cut = True
                break
            self._used += size
            found.append(record)
        return found

    def leading(self, records: Iterable[S]) -> list[S]:
        """As `fitting`, for what may be left out altogether: none of the records where a step has brought too much before."""
        try:
            return self.fitting(records)
        except Refused:
            self.is_cut = True
            return []

    def bring(self, records: Iterable[Sized]) -> None:
        """Count what cannot be left out, or refuse."""
        if self._most is not None:
            self._used += sum(record.size_bytes for record in records)
            if self._used > self._most:
                raise answer_too_large()
