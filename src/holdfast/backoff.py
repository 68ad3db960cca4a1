"""Delays before a retry: growing, bounded and randomised."""

from random import SystemRandom

from msgspec import Struct

from holdfast.codec.fields import Number, Seconds, check_fields

# Not the random numbers of the program, which may be seeded and counted on; and not the same ones in a forked child.
_random = SystemRandom()

_FIELDS = (Seconds("first_s"), Number("factor"), Seconds("most_s"), Number("jitter"))


class Backoff(Struct, frozen=True):
    """A growing delay between tries."""

    first_s: float = 0.05
    factor: float = 2.0
    most_s: float = 5.0
    jitter: float = 0.5
    """The random part of a delay: 0.5 gives between half of it and all of it."""

    def __post_init__(self) -> None:
        check_fields(self, _FIELDS)
        if self.factor < 0.0:
            raise ValueError(f"factor must be at least 0, not {self.factor}")
        if not 0.0 <= self.jitter <= 1.0:
            raise ValueError(f"jitter must be a number from 0 to 1, not {self.jitter}")

    def delay_s(self, tried: int) -> float:
        """The delay after `tried` tries, the first of which is 1."""
        return self.longest_s(tried) * _random.uniform(1.0 - self.jitter, 1.0)

    def longest_s(self, tried: int) -> float:
        """The same delay before anything is drawn from it."""
        try:
            return min(self.most_s, self.first_s * self.factor ** (tried - 1))
        except OverflowError:  # a message on its two thousandth attempt
            return self.most_s
