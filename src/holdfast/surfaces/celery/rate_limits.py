"""`rate_limit`: how often a task is started."""

from typing import Final

from holdfast.rates import Rate
from holdfast.surfaces.celery.exceptions import ImproperlyConfigured

UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}


def rate_of(given: str | float | None) -> Rate | None:
    """The rate that a `rate_limit` says; None where it says that there is none."""
    if not given:
        return None
    number, _, unit = str(given).partition("/")
    try:
        count, per_s = float(number), UNITS[unit or "s"]
    except (ValueError, KeyError):
        raise ImproperlyConfigured(
            f"rate_limit={given!r}: write so many in a second, a minute or an hour, '10/s', '100/m' or '5/h', or a number for a second"
        ) from None
    if count == 0:
        return None
    return Rate(int(count), per_s) if count.is_integer() else Rate(1, per_s / count)
