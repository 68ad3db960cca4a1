"""Failed logins, counted by address."""

import pytest

from holdfast.server.auth.login_throttle import ADDRESSES, Failures
from holdfast.stores.http.problems import WireError


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def failures(clock: Clock) -> Failures:
    return Failures(limit=3, window_s=60.0, now=clock)


def test_the_window_slides(failures: Failures, clock: Clock) -> None:
    for _ in range(3):
        failures.check("1.2.3.4")
        failures.add("1.2.3.4")
        clock.now += 10
    with pytest.raises(WireError, match="try again in 30 s") as refused:
        failures.check("1.2.3.4")
    assert (refused.value.problem.status, refused.value.headers) == (429, ((b"retry-after", b"30"),))
    clock.now += 30
    failures.check("1.2.3.4")
    failures.add("1.2.3.4")
    assert failures.wait_s("1.2.3.4") == 10


def test_an_address_is_counted_for_itself(failures: Failures) -> None:
    for _ in range(3):
        failures.add("1.2.3.4")
    failures.check("1.2.3.5")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:1.2.3.4", "1.2.3.4", True),
        ("unknown", "unknown", True),
    ],
)
def test_whoever_has_a_whole_network_is_one(failures: Failures, one: str, other: str, same: bool) -> None:  # noqa: FBT001 - a table
    for _ in range(3):
        failures.add(one)
    assert (failures.wait_s(other) > 0) is same


def test_addresses_without_number_do_not_fill_the_memory(failures: Failures) -> None:
    for number in range(ADDRESSES + 100):
        failures.add(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(failures._moments) == ADDRESSES
