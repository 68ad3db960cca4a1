"""The clock that tests own."""

import subprocess
import sys

import pytest

from holdfast.testing import FakeClock


def test_time_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(start_us=5)
    assert (clock.now_us(), clock.now_us()) == (5, 5)
    clock.advance(1.5)
    assert clock.now_us() == 1_500_005


def test_time_never_goes_back() -> None:
    clock = FakeClock()
    with pytest.raises(ValueError, match="never goes back"):
        clock.advance(-1)


def test_a_step_of_the_wall_clock_leaves_store_time_alone() -> None:
    clock = FakeClock()
    before = clock.now_us()
    clock.step_wall(-3_600)
    assert clock.now_us() == before
    assert clock.wall_offset_us() == -3_600_000_000
    assert clock.wall_us() == before - 3_600_000_000


def test_subscribers_are_told_of_every_move_until_they_leave() -> None:
    clock, seen = FakeClock(start_us=0), list[int]()
    leave = clock.subscribe(lambda: seen.append(clock.now_us()))
    clock.advance(1)
    clock.step_wall(1)
    leave()
    leave()
    clock.advance(1)
    assert seen == [1_000_000, 1_000_000]


def test_a_subscriber_may_look_at_the_clock_and_move_it() -> None:
    clock = FakeClock(start_us=0)
    leave = clock.subscribe(lambda: leave() or clock.advance(1))  # type: ignore[func-returns-value]
    clock.advance(1)
    assert clock.now_us() == 2_000_000


def test_the_clock_needs_neither_pytest_nor_hypothesis() -> None:
    program = "import sys, holdfast.testing.clock; sys.exit(any(name in sys.modules for name in ('pytest', 'hypothesis')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
