"""`celery.schedules`: when periodic tasks run."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NoReturn

from holdfast.schedules.rules import Every
from holdfast.surfaces.celery.refusals import refused

Field = int | str | Iterable[int | str]


class crontab:  # noqa: N801 - Celery's name
    """The fields of a cron expression; each is a number, a text as in `*/15` or `mon-fri`, or several of them."""

    def __init__(
        self, minute: Field = "*", hour: Field = "*", day_of_week: Field = "*", day_of_month: Field = "*", month_of_year: Field = "*"
    ) -> None:
        self.minute: str = _text(minute)
        self.hour: str = _text(hour)
        self.day_of_week: str = _text(day_of_week)
        self.day_of_month: str = _text(day_of_month)
        self.month_of_year: str = _text(month_of_year)
        if "*" not in (self.day_of_week[0], self.day_of_month[0]):
            raise ValueError(
                "crontab with both day_of_week and day_of_month: Celery runs it when both fit, cron expressions when one does; "
                "give one of them, and let the task look at the other"
            )

    @property
    def rule(self) -> str:
        """The cron expression."""
        return f"{self.minute} {self.hour} {self.day_of_month} {self.month_of_year} {self.day_of_week}"

    def __repr__(self) -> str:
        return f"<crontab: {self.rule}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, crontab) and self.rule == other.rule

    def __hash__(self) -> int:
        return hash(self.rule)


def solar(*_: Any) -> NoReturn:
    """Not supported; the error names the remedy."""
    raise refused("celery.schedules", "solar", ())


def schedule(run_every: float | timedelta) -> timedelta:
    """An interval."""
    return run_every if isinstance(run_every, timedelta) else timedelta(seconds=run_every)


def rule_of(given: Any) -> str | Every:
    """The rule of Holdfast for what stands in a beat schedule."""
    if isinstance(given, crontab):
        return given.rule
    if isinstance(given, timedelta):
        return Every(seconds=given.total_seconds())
    if isinstance(given, int | float):
        return Every(seconds=float(given))
    raise TypeError(f"a schedule is a crontab(…), a timedelta or a number of seconds, not {given!r}")


def _text(field: Field) -> str:
    if isinstance(field, int | str):
        return str(field).replace(" ", "")
    return ",".join(str(one) for one in sorted(field, key=str))
