"""One store of records under stable keys; attempts, ledgers and results are named after it."""

from typing import Protocol, TypeVar

from holdfast.surfaces.localqueue._sync import records
from holdfast.surfaces.localqueue.record_location import R, RecordLocation

T = TypeVar("T")


class KeyedRecords(Protocol[T]):
    """Keeps records under stable keys."""

    def load(self, key: str) -> T | None:
        """The record, None where there is none."""

    def save(self, key: str, record: T) -> None:
        """Keep a record."""

    def delete(self, key: str) -> None:
        """Remove a record, if there is one."""


class RecordStore(RecordLocation[R]):
    """Keeps records in the store that a URL names, or a client of one."""

    def load(self, key: str) -> R | None:
        """The record, None where there is none."""
        found: R | None = records.load(self, key)
        return found

    def save(self, key: str, record: R) -> None:
        """Keep a record; TypeError for one that would not come back equal."""
        records.save(self, key, record)

    def delete(self, key: str) -> None:
        """Remove a record, if there is one."""
        records.delete(self, key)
