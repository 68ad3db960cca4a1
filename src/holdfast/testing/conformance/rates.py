"""Rates: entries that let so many units through in so much time, by the clock of the store."""

from random import Random
from typing import Any

import pytest

from holdfast.commands import Change, Put, Together, Write
from holdfast.commands.change import Written
from holdfast.errors import RateLimited, Refused
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import DICT, JOBS, item, raw, read, stats, write
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.threads import together

THIRD_US = 333_334


class RateConformance(Conformance):
    """No time has more units than its rate and burst, and few are left unused."""

    def test_a_burst_comes_at_once_and_then_one_in_each_interval(self, store: Store, clock: FakeClock) -> None:
        assert [pace(store, burst=3).written for _ in range(5)] == [True, True, True, False, False]
        clock.advance(0.999)
        assert not pace(store, burst=3).written
        clock.advance(0.001)
        assert [pace(store, burst=3).written for _ in range(2)] == [True, False]

    def test_a_refusal_says_when_and_uses_nothing(self, store: Store, clock: FakeClock) -> None:
        pace(store, burst=3, cost=2)
        refused = pace(store, burst=3, cost=3)
        assert (refused.because, refused.due_in_s) == ("rate", 2.0)
        clock.advance(0.5)
        assert pace(store, burst=3, cost=3).due_in_s == 1.5
        clock.advance(1.5)
        assert pace(store, burst=3, cost=3).written

    def test_the_entry_ends_when_the_whole_burst_is_free(self, store: Store, clock: FakeClock) -> None:
        assert read(store) == {}
        pace(store, burst=3, cost=2)
        assert read(store) == {"k": None}
        clock.advance(2)
        assert read(store) == {}

    def test_keys_have_rates_of_their_own(self, store: Store) -> None:
        assert pace(store).written
        assert pace(store, "other").written
        assert not pace(store).written

    def test_what_has_a_value_does_not_pace(self, store: Store) -> None:
        write(store, "k", 1)
        with pytest.raises(Refused):
            pace(store)
        assert read(store) == {"k": 1}

    def test_a_step_is_refused_whole_where_a_rate_is_used_up(self, store: Store) -> None:
        step = Together([Write(DICT, [paced("k")]), Put(JOBS, [item("a")])])
        store.execute(step)
        with pytest.raises(RateLimited) as refused:
            store.execute(Together([Write(DICT, [Change("x", value=raw(1)), paced("k")]), Put(JOBS, [item("b")])]))
        assert refused.value.due_in_s == 1.0
        assert stats(store).total == 1
        assert read(store, "x") == {}

    def test_of_many_at_once_no_more_than_the_burst_come_through(self, store: Store) -> None:
        granted = together(*[lambda: pace(store, burst=5).written] * 32)
        assert sum(granted) == 5

    @pytest.mark.parametrize("burst", [1, 10])
    def test_no_window_has_more_than_its_rate_and_little_is_left_unused(self, store: Store, clock: FakeClock, burst: int) -> None:
        chance, begun, granted = Random(7), clock.now_us(), list[int]()
        while len(granted) < 150:
            written = pace(store, interval_us=THIRD_US, burst=burst)
            if written.written:
                granted.append(clock.now_us())
            else:
                # With a burst of one it asks when it is due; else it may be late, and what was left is used later.
                assert written.due_in_s is not None
                clock.advance(written.due_in_s + (chance.random() if burst > 1 else 0))
        for first, start in enumerate(granted):
            assert sum(start <= moment < start + 1_000_000 for moment in granted[first:]) <= 3 + burst
        assert len(granted) >= 0.98 * (granted[-1] - begun) / THIRD_US


def paced(key: str, interval_us: int = 1_000_000, **options: Any) -> Change:
    return Change(key, "pace", interval_us=interval_us, **options)


def pace(store: Store, key: str = "k", **options: Any) -> Written:
    """One change that paces, one unit a second unless said otherwise."""
    return store.execute(Write(DICT, [paced(key, **options)]))[0]
