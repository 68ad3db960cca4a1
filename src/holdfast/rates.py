"""Rates: how many units in how much time, and how many at once."""

import math

from msgspec import Struct

from holdfast.codec.fields import BURST, LONGEST_BURST_US, Seconds, Whole

_COUNT = Whole("count", 1, BURST.most)
_PER_S = Seconds("per_s", zero=False)


class Rate(Struct, frozen=True):
    """`count` units in each `per_s` seconds; up to `burst` may come at once, where none came for long.

    In no time of `per_s` seconds, wherever it begins, are more than `count + burst` units let through. One unit takes `per_s / count`
    seconds, rounded up to whole microseconds.
    """

    count: int
    per_s: float
    burst: int = 1

    def __post_init__(self) -> None:
        _COUNT.check(self.count)
        _PER_S.check(self.per_s)
        BURST.check(self.burst)
        if self.per_s * 1_000_000 < self.count:
            raise ValueError(f"a rate of {self.count:,} in {self.per_s} s is more than one in a microsecond: count larger units")
        if self.interval_us * self.burst > LONGEST_BURST_US:
            raise ValueError("a burst must be over within thirty years: lower burst or per_s")

    @property
    def interval_us(self) -> int:
        """The time that one unit takes, in whole microseconds."""
        return math.ceil(self.per_s * 1_000_000 / self.count)
