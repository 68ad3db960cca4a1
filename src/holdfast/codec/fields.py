"""The valid values of each field of a command: one declaration per field, checked before anything is sent."""

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from operator import index
from typing import Any, Final, Protocol

from msgspec import Raw, Struct

from holdfast.codec.compiled_check import compiled_check
from holdfast.codec.keys import KEY_BYTES
from holdfast.codec.limits import Limits, check_duration, keepable, shown
from holdfast.codec.metadata import decode_metadata
from holdfast.codec.scalars import INT_MAX, INT_MIN


class Field(Protocol):
    """A field by its name, and what it may hold."""

    @property
    def name(self) -> str: ...

    def check(self, value: object) -> object:
        """The value as stores keep it; TypeError or ValueError for one that the field cannot hold."""
        ...


class Whole(Struct, frozen=True):
    """A whole number, from `least` to `most`; any integer type is taken, and kept as an int."""

    name: str
    least: int
    most: int
    optional: bool = False

    def check(self, value: object) -> Any:
        if type(value) is int and self.least <= value <= self.most:
            return value
        if value is None and self.optional:
            return None
        if isinstance(value, bool) or not hasattr(type(value), "__index__"):
            raise TypeError(f"{self.rule}, not {shown(value)} ({type(value).__name__})")
        number = index(value)  # type: ignore[arg-type]
        if not self.least <= number <= self.most:
            raise ValueError(f"{self.rule}, not {shown(number)}")
        return number

    @property
    def rule(self) -> str:
        return f"{self.name} must be a whole number from {self.least:,} to {self.most:,}{' or None' if self.optional else ''}"


class Seconds(Struct, frozen=True):
    """A duration in seconds, kept as a float."""

    name: str
    zero: bool = True
    optional: bool = False
    forever: bool = False
    """Whether it may be infinite."""

    def check(self, value: object) -> Any:
        if value is None and self.optional:
            return None
        return check_duration(value, self.name, zero=self.zero, allow_inf=self.forever, optional=self.optional)


class Number(Struct, frozen=True):
    """A finite number, whole ones within 64 bits: every number that a value may hold."""

    name: str

    def check(self, value: object) -> int | float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{self.rule}, not {shown(value)} ({type(value).__name__})")
        number = index(value) if hasattr(type(value), "__index__") else float(value)  # type: ignore[arg-type]
        if not (INT_MIN <= number <= INT_MAX if isinstance(number, int) else math.isfinite(number)):
            raise ValueError(f"{self.rule}, not {shown(number)}")
        return number

    @property
    def rule(self) -> str:
        return f"{self.name} must be a finite number, a whole one from {INT_MIN:,} to {INT_MAX:,}"


class Flag(Struct, frozen=True):
    """True or False."""

    name: str

    def check(self, value: object) -> bool:
        if type(value) is not bool:
            raise TypeError(f"{self.name} must be True or False, not {shown(value)} ({type(value).__name__})")
        return value


class Text(Struct, frozen=True):
    """A text of at most so many bytes in UTF-8 that every store can keep."""

    name: str
    most: int
    least: int = 0
    optional: bool = False
    is_key: bool = False
    """Whether it is, or is a part of, a key: in a store by reference that is any object, of which nothing is refused."""

    def check(self, value: object) -> object:
        if type(value) is str and self.least <= len(value) <= self.most and value.isascii() and value.isprintable():
            return value  # Nearly all of them.
        if (value is None and self.optional) or (self.is_key and not isinstance(value, str)):
            return value
        if not isinstance(value, str):
            raise TypeError(f"{self.rule}, not {shown(value)} ({type(value).__name__})")
        if keepable(value) != value:
            raise ValueError(f"{self.rule}, without the character 0 and lone surrogates, not {shown(ascii(value))}")
        if not self.least <= len(value.encode()) <= self.most:
            raise ValueError(f"{self.rule}, not of {len(value.encode()):,} ({shown(value)})")
        return value

    @property
    def rule(self) -> str:
        return f"{self.name} must be a text of {self.least:,} to {self.most:,} bytes{' or None' if self.optional else ''}"


class Each(Struct, frozen=True):
    """A list of which every member is of one kind; or None."""

    name: str
    of: Field
    most: int | None = None
    """How many it may have, where it is kept."""

    def check(self, value: Any) -> object:
        if value is None:
            return value
        if self.most is not None:
            return self._kept(value)
        for one in value:
            self.of.check(one)
        return value

    def _kept(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(f"{self.rule}, not {shown(value)} ({type(value).__name__})")
        kept = tuple(self.of.check(one) for one in value)
        if self.most is not None and len(kept) > self.most:
            raise ValueError(f"{self.rule}, not {len(kept):,}")
        return kept

    @property
    def rule(self) -> str:
        return f"{self.name} must be a list of at most {self.most} texts"


class JsonObject(Struct, frozen=True):
    """A JSON object, as text, of which every value can be read; or None."""

    name: str

    def check(self, value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, Raw):
            raise TypeError(f"{self.rule}, not {shown(value)} ({type(value).__name__})")
        try:
            decode_metadata(value)
        except ValueError as error:
            raise ValueError(f"{self.rule}, not {shown(bytes(value))}: {error}") from None
        return value

    @property
    def rule(self) -> str:
        return f"{self.name} must be a JSON object of readable values"


class Row(Struct, frozen=True):
    """So many values, each of its own kind; or None."""

    name: str
    parts: tuple[Field, ...]

    def check(self, value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, tuple | list):
            raise TypeError(f"{self.rule}, not {shown(value)} ({type(value).__name__})")
        if len(value) != len(self.parts):
            raise ValueError(f"{self.rule}, not {len(value):,}")
        return tuple(part.check(one) for part, one in zip(self.parts, value, strict=True))

    @property
    def rule(self) -> str:
        return f"{self.name} must have {len(self.parts)} parts"


def check_fields(struct: Struct, fields: Sequence[Field]) -> None:
    """Refuse what a field cannot hold, and keep the rest in the form that stores keep; what is left out stays so."""
    known = _checks.get((type(struct), id(fields)))
    check = _learn(type(struct), fields) if known is None else known[1]
    check(struct)


_checks: dict[tuple[type[Struct], int], tuple[Sequence[Field], Callable[[Struct], None]]] = {}
"""By type and fields. Those are constants, and kept, so that no others are ever at their address."""


def _learn(kind: type[Struct], fields: Sequence[Field]) -> Callable[[Struct], None]:
    check = compiled_check(kind, fields)
    _checks[kind, id(fields)] = fields, check
    return check


_INT32: Final = 2**31 - 1
_INT53: Final = 2**53 - 1
"""Every store, and JSON everywhere, keeps whole numbers up to this one exactly."""

_MOMENT: Final = 2**62
"""The end of a lease that has none, and far behind every year that a datetime has."""


def number(name: str) -> Whole:
    """A number that the store gives out: of an event, so a token or a revision, or of a message in its line."""
    return Whole(name, 0, _INT53)


def moment(name: str, *, optional: bool = False) -> Whole:
    """A moment, in microseconds."""
    return Whole(name, -_MOMENT, _MOMENT, optional)


PRIORITY: Final = Whole("priority", -_INT32 - 1, _INT32)
MAX_ATTEMPTS: Final = Whole("max_attempts", 1, _INT32, optional=True)
MAXSIZE: Final = Whole("maxsize", 1, _INT32, optional=True)
LIMIT: Final = Whole("limit", 1, _INT32)
CAPACITY: Final = Whole("capacity", 1, 2**20, optional=True)
WEIGHT: Final = Whole("weight", 1, 2**20)
GROUP_LIMIT: Final = Whole("group_limit", 1, _INT32, optional=True)
QUEUE_LIMIT: Final = Whole("limit", 1, _INT32, optional=True)
GROUP_WEIGHT: Final = Whole("weight", 1, 1_000)
MAX_WAITERS: Final = Whole("max_waiters", 0, _INT32, optional=True)
KEEP: Final = Whole("keep", 0, _INT53)
AFTER: Final = Whole("after", -1, _INT53)
REVISION: Final = number("revision")
FENCE: Final = Whole("fence", 0, _INT53, optional=True)
TOKEN: Final = number("token")
HELD_TOKEN: Final = Whole("token", 0, _INT53, optional=True)
AT: Final = moment("at", optional=True)
BY: Final = Number("by")

DELAY_S: Final = Seconds("delay_s")
SPACING_S: Final = Seconds("spacing_s")
START_WITHIN_S: Final = Seconds("start_within_s", optional=True)
AT_LATEST_S: Final = Seconds("at_latest_s", optional=True)
UNIQUE_FOR_S: Final = Seconds("unique_for_s", zero=False, optional=True)
IN_LINE_S: Final = Seconds("in_line_s", zero=False, optional=True)
LEASE_S: Final = Seconds("lease_s", zero=False, optional=True)
EXTENSION_S: Final = Seconds("lease_s", optional=True)
AGING_S: Final = Seconds("aging_s", zero=False, optional=True)
KEEP_DONE_S: Final = Seconds("keep_done_s", zero=False, optional=True)
THROTTLE_S: Final = Seconds("throttle_s")
LONGEST_BURST_US: Final = 10**15
"""Thirty years: added to the present it is still a whole number that a float holds, as Lua's are."""
INTERVAL_US: Final = Whole("interval_us", 0, LONGEST_BURST_US)
BURST: Final = Whole("burst", 1, _INT32)
COST: Final = Whole("cost", 1, _INT32)
TTL_S: Final = Seconds("ttl_s", zero=False, optional=True)
KEEP_S: Final = Seconds("keep_s")
OLDER_THAN_S: Final = Seconds("older_than_s", optional=True)
NEWER_THAN_S: Final = Seconds("newer_than_s", optional=True)

TAKE: Final = Flag("take")
COUNTS: Final = Flag("counts")
ALL_OR_NONE: Final = Flag("all_or_none")
DROP: Final = Flag("drop")
EXACT: Final = Flag("exact")
PAUSED: Final = Flag("paused")
ANCHOR: Final = Flag("anchor")
PROGRESS: Final = Flag("progress")
UNSTARTED: Final = Flag("unstarted")
BY_POLICY: Final = Flag("by_policy")
FORGET: Final = Flag("forget")
DONE: Final = Flag("done")

MERGE: Final = Flag("merge")
LOST: Final = Flag("lost")
SEALED_AT: Final = number("at")
TARGET_AT: Final = Whole("target_at", 0, _INT53, optional=True)

METADATA: Final = JsonObject("metadata")

_NAME_BYTES: Final = Limits().name_bytes
_ERROR_BYTES: Final = 16_000
"""As many as the longest error text that is kept can have."""
_PLACE_BYTES: Final = 4_000
TRACE_BYTES: Final = 16 * 1024


def name_text(field: str, *, optional: bool = False) -> Text:
    """The name or the id of something, to be looked up or taken over."""
    return Text(field, _NAME_BYTES, optional=optional)


def key_text(field: str, *, optional: bool = False) -> Text:
    """The text of a key, or the beginning of one."""
    return Text(field, KEY_BYTES, optional=optional, is_key=True)


def error_text(field: str) -> Text:
    """An error's text, or a part of one."""
    return Text(field, _ERROR_BYTES, optional=True)


def place_text(field: str) -> Text:
    """What those who copy call a store, or how far they came."""
    return Text(field, _PLACE_BYTES)


REASON: Final = Text("reason", 1_000, 1)
SOURCE: Final = place_text("source")
HOLDER: Final = name_text("holder")
CLAIM_KEY: Final = key_text("key", optional=True)
LEASE: Final = name_text("lease", optional=True)
IDS: Final = Each("ids", name_text("ids"))
LABELS: Final = Each("labels", Text("labels", 64, 1), 16)
LABEL: Final = Text("label", 64, 1, optional=True)
GROUP: Final = name_text("group", optional=True)
TRACE: Final = Text("trace", TRACE_BYTES, optional=True)
KEYS: Final = Each("keys", key_text("keys"))
PREFIX: Final = Text("prefix", KEY_BYTES)
CLEARED_PREFIX: Final = Text("prefix", KEY_BYTES, optional=True)
NAME_PREFIX: Final = name_text("prefix")
AFTER_KEY: Final = key_text("after", optional=True)
AFTER_NAME: Final = name_text("after", optional=True)
AFTER_FENCE: Final = Row("after", (name_text("after"), key_text("after")))
ERROR_CONTAINS: Final = error_text("error_contains")
ERROR_CLASS: Final = name_text("error_class", optional=True)
VALUE_CONTAINS: Final = error_text("value_contains")
KEY_PREFIX: Final = key_text("key_prefix", optional=True)
