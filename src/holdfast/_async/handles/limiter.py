"""Limiter: a rate that all processes keep together."""

from collections.abc import Hashable
from typing import ClassVar, Unpack

from holdfast._async.flows.limiting import acquire
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.arguments.where import StoreHandle, Where
from holdfast.codec import JSON, check_name, encode_key
from holdfast.codec.object_fields import Instance
from holdfast.rates import Rate

RATE = Instance("rate", Rate)


@show_options
class AsyncLimiter(StoreHandle):
    """A rate by name, kept by all who use the store: `Limiter("openai", Rate(60, per_s=60.0, burst=10)).acquire()`.

    It counts by the clock of the store, so the rate is exact however many processes share it. Each `key` has a rate of its own. What is
    used is an entry of the dict with the limiter's name; it is gone once the whole burst is free again. The name should be no other dict's.
    """

    aio: ClassVar[Twin] = Twin()

    name: str
    rate: Rate

    def __init__(self, name: str, rate: Rate, **where: Unpack[Where]) -> None:
        super().__init__(JSON, **where)
        self.name = check_name(name, "limiter")
        RATE.check(rate)
        self.rate = rate

    async def acquire(self, *, key: Hashable = "", cost: int = 1, timeout_s: float | None = None) -> None:
        """Use `cost` units of the rate of this key, as soon as it lets them through.

        Waits at most `timeout_s`, with `math.inf` for ever; without it asks once. Raises `RateLimited`, with `due_in_s`, as soon as it is
        known that they would come later; then nothing is used. There is no line: who asks first when units are free gets them. A cost
        above the burst is a `ValueError`.
        """
        await acquire(self._reach().async_store, self.name, encode_key(key), self.rate, cost=cost, timeout_s=timeout_s)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.rate!r})"
