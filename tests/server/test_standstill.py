"""A server that stood still takes no command for a moment: what lies in its sockets may be minutes old."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from holdfast.commands import Count, Put
from holdfast.errors import StoreUnavailable
from holdfast.server.app import Options
from holdfast.server.load.standstill import STALE_S, STALL_S, Stalls
from holdfast.stores.http.problems import WireError
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.retrying import Patience
from holdfast.testing.conformance.asking import JOBS, item
from tests.server.serving import Served


class Uptime:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def uptime() -> Uptime:
    return Uptime()


@pytest.fixture
def served(uptime: Uptime) -> Iterator[Served]:
    served = Served(MemoryStore(), Options(uptime=uptime))
    yield served
    served.close()


def test_a_command_that_was_found_after_a_stall_is_not_executed_and_can_be_sent_again(served: Served, uptime: Uptime) -> None:
    with closing(HttpStore(served.url, patience=Patience(most_s=0.0))) as store:
        copy = Put(JOBS, [item("a")], id="the-copy")
        uptime.s += STALL_S + 1
        with pytest.raises(StoreUnavailable, match="stood still"):
            store.execute(copy)
        uptime.s += STALE_S
        assert store.execute(Count(JOBS)).total == 0
        assert store.execute(copy).created == [True]


def test_a_request_that_was_being_read_when_the_process_stood_still_is_refused(uptime: Uptime) -> None:
    stalls = Stalls(uptime)
    begun = stalls.begin()
    uptime.s += STALL_S + 1
    with pytest.raises(WireError, match="stood still"):
        stalls.check(begun)


def test_a_server_that_was_only_idle_goes_on(uptime: Uptime) -> None:
    stalls = Stalls(uptime)
    for _ in range(100):
        uptime.s += STALL_S
        stalls.check(stalls.begin())
