"""Rules of schedules: cron expressions in a time zone, and intervals."""

from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from math import inf
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from msgspec import Struct

from holdfast.codec.limits import DURATION_MAX_S
from holdfast.errors import MissingExtra

SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""What cron calls them, and what they stand for."""

SECOND = 1_000_000
LONGEST = round(DURATION_MAX_S) * SECOND
EVERY = "every "
"""What an interval begins with, as text."""


class Rule(Protocol):
    """When a schedule runs. Moments are microseconds of the wall clock."""

    def after(self, moment: int) -> int | None:
        """The first run after a moment; None if there is none."""
        ...

    def newest(self, moment: int) -> int | None:
        """The last run up to a moment, which may be that moment itself; None if there is none."""
        ...


class Every(Struct, frozen=True):
    """An interval, counted from the beginning of 1970 in UTC, so that all processes agree: `Every(hours=6, offset_s=300)`.

    The parts add up. `offset_s` moves every run by so much; it is less than the interval.
    """

    days: float = 0.0
    hours: float = 0.0
    minutes: float = 0.0
    seconds: float = 0.0
    offset_s: float = 0.0

    def __post_init__(self) -> None:
        if any(isinstance(part, bool) or not isinstance(part, int | float) or not 0 <= part < inf for part in self._parts()):
            parts = ", ".join(f"{name}={part!r}" for name, part in zip(self.__struct_fields__, self._parts(), strict=True) if part)
            raise ValueError(f"the parts of an interval are numbers, and not negative: Every({parts})")
        if self.interval_us < SECOND:
            raise ValueError(f"an interval of a schedule is at least one second: {self}")
        if self.interval_us > LONGEST:
            raise ValueError(f"an interval of a schedule is at most 100 years: {self}")
        if self.offset_us >= self.interval_us:
            raise ValueError(f"offset_s has to be less than the interval: {self}")

    def _parts(self) -> tuple[object, ...]:
        return self.days, self.hours, self.minutes, self.seconds, self.offset_s

    @property
    def interval_us(self) -> int:
        """From one run to the next."""
        return round((self.days * 86_400 + self.hours * 3_600 + self.minutes * 60 + self.seconds) * SECOND)

    @property
    def offset_us(self) -> int:
        """How much later than a multiple of the interval each run is."""
        return round(self.offset_s * SECOND)

    def after(self, moment: int) -> int | None:
        """See `Rule.after`."""
        return (moment - self.offset_us) // self.interval_us * self.interval_us + self.interval_us + self.offset_us

    def newest(self, moment: int) -> int | None:
        """See `Rule.newest`."""
        return (moment - self.offset_us) // self.interval_us * self.interval_us + self.offset_us

    def __str__(self) -> str:
        """As a schedule stores it."""
        offset = f" offset {self.offset_us / SECOND:g} s" if self.offset_us else ""
        return f"{EVERY}{self.interval_us / SECOND:.15g} s{offset}"


class Cron(Struct, frozen=True):
    """A cron expression of five fields, or six with seconds in front, in a time zone.

    Daylight saving time is treated as Debian's cron does: a time of day that does not exist that day runs once, when the clock has moved
    on; one that comes twice runs once; what runs every hour or more often runs in both.
    """

    text: str
    zone: str

    def __post_init__(self) -> None:
        cronsim, expression = _cronsim(), SHORTHANDS.get(self.text.strip().lower(), self.text)
        try:
            next(cronsim.CronSim(expression, datetime(2026, 1, 1, tzinfo=zone_of(self.zone))))
        except cronsim.CronSimError as error:
            raise ValueError(f"{self.text!r} is no cron expression: {str(error).lower()}; write 'minute hour day month weekday'") from None
        except StopIteration:
            raise ValueError(f"{self.text!r} names no day that ever comes") from None

    def after(self, moment: int) -> int | None:
        """See `Rule.after`."""
        return self._next(moment, is_backwards=False)

    def newest(self, moment: int) -> int | None:
        """See `Rule.newest`."""
        return self._next(moment + SECOND - moment % SECOND, is_backwards=True)

    def _next(self, moment: int, *, is_backwards: bool) -> int | None:
        expression = SHORTHANDS.get(self.text.strip().lower(), self.text)
        start = datetime.fromtimestamp(moment // SECOND, UTC).astimezone(zone_of(self.zone))
        found = next(_cronsim().CronSim(expression, start, reverse=is_backwards), None)
        return None if found is None else round(found.timestamp()) * SECOND

    def __str__(self) -> str:
        """As a schedule stores it."""
        return self.text


def _cronsim() -> Any:
    try:
        return import_module("cronsim")
    except ImportError:
        raise MissingExtra("cron expressions need their extra: pip install 'holdfast[cron]'; Every(...) needs nothing") from None


@lru_cache(maxsize=64)
def zone_of(name: str) -> ZoneInfo:
    """The time zone; ValueError if there is none of this name."""
    if not isinstance(name, str):
        raise TypeError(f"tz must be the name of a time zone, such as 'Europe/Vienna', not {name!r} ({type(name).__name__})")
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(f"there is no time zone {name!r}: write a name like Europe/Vienna, or install the package tzdata") from None


def rule_of(rule: "str | Every", zone: str = "UTC") -> Rule:
    """The rule that a text or an interval stands for."""
    zone_of(zone)
    if isinstance(rule, Every):
        return rule
    if not isinstance(rule, str):
        raise TypeError(f"a rule is a cron expression or Every(...), not {type(rule).__name__}")
    return _every(rule) if rule.startswith(EVERY) else Cron(rule, zone)


def _every(text: str) -> Every:
    words = text.split()
    try:
        match words:
            case ["every", seconds, "s"]:
                return Every(seconds=float(seconds))
            case ["every", seconds, "s", "offset", offset, "s"]:
                return Every(seconds=float(seconds), offset_s=float(offset))
    except ValueError:
        pass
    raise ValueError(f"{text!r} is no interval: write 'every 300 s', or 'every 300 s offset 10 s'")
