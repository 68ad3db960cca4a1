"""Limits: what is refused before anything is sent, and how the refusal reads."""

from datetime import timedelta
from math import inf, nan

import pytest

from holdfast.codec import DURATION_MAX_S, JSON, Limits, check_batch, check_duration, check_name, check_value_size


def test_the_limits_are_those_of_the_contract() -> None:
    assert Limits() == Limits(name_bytes=200, key_bytes=400, value_bytes=2**20, batch_items=10_000, batch_bytes=2**24, answer_bytes=2**24)


@pytest.mark.parametrize("name", ["a", "a" * 200, "é" * 100, "jobs/eu west:1", "日本", "\u2028"])
def test_a_good_name_is_given_back(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "dict name is empty; it must have 1 to 200 bytes"),
        ("é" * 101, "… is 202 bytes long, more than the limit of 200"),
        ("a\nb", r"dict name 'a\\nb' has a control character"),
        ("\x7f", "control character"),
        ("\x85", "control character"),
        ("\x00", "control character"),
        ("\ud800", r"dict name '\\ud800' has a lone surrogate"),
    ],
)
def test_a_bad_name_is_a_value_error_that_says_what_and_why(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_name(name, "dict")


@pytest.mark.parametrize("name", [None, b"jobs", 1, ["a"]])
def test_a_name_that_is_no_str_is_a_type_error(name: object) -> None:
    with pytest.raises(TypeError, match="queue name must be a str, not"):
        check_name(name)


def test_a_value_of_the_limit_passes_and_one_byte_more_does_not() -> None:
    assert check_value_size(JSON.encode("a" * (2**20 - 2))) == 2**20
    with pytest.raises(ValueError, match=r"value is 1,048,577 bytes encoded, more than the limit of 1,048,576"):
        check_value_size(JSON.encode("a" * (2**20 - 1)))
    assert check_value_size(JSON.encode("a" * 2**20), Limits(value_bytes=2**21)) == 2**20 + 2


def test_a_batch_of_the_limit_passes_and_one_more_does_not() -> None:
    check_batch(10_000, 2**24)
    with pytest.raises(ValueError, match=r"batch has 10,001 items, more than the limit of 10,000"):
        check_batch(10_001)
    with pytest.raises(ValueError, match=r"batch is 16,777,217 bytes, more than the limit of 16,777,216"):
        check_batch(1, 2**24 + 1)
    with pytest.raises(ValueError, match=r"the limit of 2"):
        check_batch(3, 0, Limits(batch_items=2))


@pytest.mark.parametrize("seconds", [0, 0.0, 1, 0.25, DURATION_MAX_S])
def test_a_good_duration_is_given_back_as_a_float(seconds: float) -> None:
    checked = check_duration(seconds, "lease_s")
    assert checked == seconds
    assert type(checked) is float


@pytest.mark.parametrize(
    "seconds", [-1, -0.1, nan, inf, -inf, DURATION_MAX_S * 1.01, pytest.param(10**5000, id="huge"), pytest.param(-(10**5000), id="-huge")]
)
def test_a_bad_duration_is_a_value_error_that_names_the_argument(seconds: float) -> None:
    with pytest.raises(ValueError, match="lease_s must be"):
        check_duration(seconds, "lease_s")


@pytest.mark.parametrize("seconds", [True, False, None, "1", timedelta(seconds=1), 1j])
def test_a_duration_that_is_no_number_is_a_type_error(seconds: object) -> None:
    with pytest.raises(TypeError, match="lease_s must be a number of seconds, not"):
        check_duration(seconds, "lease_s")


def test_zero_infinity_and_the_maximum_are_the_callers_choice() -> None:
    assert check_duration(inf, "timeout_s", allow_inf=True) == inf
    for bad in (-inf, nan):
        with pytest.raises(ValueError, match="timeout_s"):
            check_duration(bad, "timeout_s", allow_inf=True)
    for zero in (0, -0.0):
        with pytest.raises(ValueError, match="lease_s must be more than 0 and"):
            check_duration(zero, "lease_s", zero=False)
    with pytest.raises(ValueError, match=r"ttl_s must be at least 0 and at most 60 seconds, not 61"):
        check_duration(61, "ttl_s", maximum=60)
