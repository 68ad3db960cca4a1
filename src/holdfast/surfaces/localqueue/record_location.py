"""Where records of one kind are kept, and in which form."""

from dataclasses import asdict
from hashlib import sha256
from typing import Any, ClassVar, Generic, TypeVar

from holdfast.surfaces.localqueue.store_location import StoreLocation

R = TypeVar("R")

KEY_BYTES = 200
"""A longer key is kept under its hash."""


class RecordLocation(StoreLocation, Generic[R]):
    """The dict of records of one kind in a store, and a second dict that lists those with an age by their moment."""

    dict_name: ClassVar[str]
    record_type: ClassVar[Any] = None
    """The dataclass of a record; None where records are plain values."""
    moment: ClassVar[str] = ""
    """The field from which the age of a record counts."""

    @staticmethod
    def has_age(record: R) -> bool:
        """Whether a record may be pruned when it is old enough."""
        del record
        return False

    @classmethod
    def encoded(cls, record: R) -> tuple[Any, float | None]:
        """A record as it is kept, and the moment from which its age counts, None where it has no age."""
        value: Any = record
        return (value if cls.record_type is None else asdict(value)), (getattr(record, cls.moment) if cls.has_age(record) else None)

    @classmethod
    def decoded(cls, value: Any) -> R | None:
        """The record that was kept, None where there is none."""
        record: R | None = value if value is None or cls.record_type is None else cls.record_type(**value)
        return record


def fitting(key: str) -> str:
    """The key, or where a dict could not hold it, its hash."""
    return key if len(key.encode()) <= KEY_BYTES else f"sha256:{sha256(key.encode()).hexdigest()}"


def age_line(moment: float, key: str) -> str:
    """What lists a record by its moment: lines sort as their moments do."""
    return f"{moment_text(moment)} {fitting(key)}"


def moment_text(moment: float) -> str:
    """A Unix timestamp in microseconds, at a fixed width."""
    return f"{microseconds(moment):020d}"


def microseconds(moment: float) -> int:
    """A Unix timestamp as a whole number."""
    return max(0, round(moment * 1_000_000))
