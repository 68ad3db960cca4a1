"""How fast each caller may ask."""

import pytest
import urllib3

from holdfast.server.app import Options
from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from holdfast.server.load.rate_limit import CALLERS, Rates
from holdfast.stores.http.problems import WireError
from holdfast.stores.memory import MemoryStore
from tests.server.serving import JSON, Served

now_s = [0.0]


@pytest.fixture(autouse=True)
def _from_the_start() -> None:
    now_s[0] = 0.0


def asked(rates: Rates, caller: str, count: int) -> int:
    """How many of so many requests are let in."""
    for number in range(count):
        try:
            rates.check(caller)
        except WireError:
            return number
    return count


def test_a_caller_may_ask_as_fast_as_said_and_for_a_moment_faster() -> None:
    rates = Rates(10.0, lambda: now_s[0])
    assert asked(rates, "a", 100) == 20
    now_s[0] += 0.5
    assert asked(rates, "a", 100) == 5
    now_s[0] += 1_000.0
    assert asked(rates, "a", 100) == 20


def test_a_caller_is_counted_alone_and_without_a_limit_nobody_is() -> None:
    rates = Rates(1.0, lambda: now_s[0])
    assert asked(rates, "a", 10) == 2
    assert asked(rates, "b", 10) == 2
    assert asked(Rates(None), "a", 1_000) == 1_000


def test_less_than_one_a_second_still_lets_one_in() -> None:
    rates = Rates(0.1, lambda: now_s[0])
    assert asked(rates, "a", 10) == 1
    now_s[0] += 10.0
    assert asked(rates, "a", 10) == 1


def test_callers_without_number_do_not_fill_the_memory() -> None:
    rates = Rates(1.0, lambda: now_s[0])
    for number in range(CALLERS + 10):
        rates.check(str(number))
    assert len(vars(rates)["_left"]) == CALLERS


def test_who_asks_too_fast_is_told_when_to_come_again_and_others_are_served() -> None:
    store = MemoryStore()
    served = Served(store, Options(requests_each_per_s=1.0, now=lambda: now_s[0]))
    tokens = [create_token(store, name, ["*"], ["default"], by=Actor("test", "here"))[1] for name in ("fast", "other")]

    def ask(token: str) -> urllib3.BaseHTTPResponse:
        headers = JSON | {"authorization": f"Bearer {token}"}
        return urllib3.request("POST", f"{served.url}/v1/count", body=b'{"queue":"jobs"}', headers=headers, retries=False)

    assert [ask(tokens[0]).status for _ in range(3)] == [200, 200, 429]
    refused = ask(tokens[0])
    assert (refused.headers["retry-after"], refused.json()["code"]) == ("1", "too_many_requests")
    assert ask(tokens[1]).status == 200
    now_s[0] += 1.0
    assert ask(tokens[0]).status == 200
    served.close()
