"""The seal of a store that was copied elsewhere, by which the copy can be undone: a sealed store opens for nothing else."""

from typing import Protocol

from msgspec import Struct


class Sealed(Struct, frozen=True):
    """What a seal says."""

    to: str
    """The URL of the copy, without a password."""
    target_at: int | None
    """The newest event's number of the copy when it was complete; None where that is not known."""


class Seal(Protocol):
    """The seal of one store, which need not be there."""

    url: str
    """The store's own, without a password."""

    def read(self) -> Sealed | None:
        """What it says; None where the store is not sealed. Raises `StoreMissing` where there is no store."""
        ...

    def remove(self) -> None:
        """Let the store be used again, as it was. Idempotent."""
        ...


def sealed(to: str | None, target_at: str | None) -> Sealed | None:
    """A seal from the two texts that a store keeps of it."""
    return None if to is None else Sealed(to, None if target_at is None else int(target_at))
