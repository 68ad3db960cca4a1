"""The delays between tries."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.backoff import Backoff


def test_a_delay_doubles_up_to_the_most() -> None:
    backoff = Backoff(first_s=1.0, factor=2.0, most_s=5.0)
    assert [backoff.longest_s(tried) for tried in range(1, 6)] == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_the_two_thousandth_try_waits_the_most() -> None:
    assert Backoff(most_s=5.0, jitter=0.0).delay_s(2_000) == 5.0


def test_two_who_failed_together_do_not_come_back_together() -> None:
    backoff = Backoff(first_s=1.0, jitter=0.5)
    assert len({backoff.delay_s(1) for _ in range(100)}) > 90


@given(tried=st.integers(1, 5_000), jitter=st.floats(0.0, 1.0))
def test_a_drawn_delay_stays_within_its_part(tried: int, jitter: float) -> None:
    backoff = Backoff(jitter=jitter)
    longest = backoff.longest_s(tried)
    assert longest * (1.0 - jitter) <= backoff.delay_s(tried) <= longest
