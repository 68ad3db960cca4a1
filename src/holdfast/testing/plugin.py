"""A pytest plugin: a store for each test, on a clock that the test can move.

def test_a_job_comes_back_when_its_worker_dies(holdfast_client, holdfast_clock):
    ...
    holdfast_clock.advance(60)
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdfast.client import ControlPlaneClient
    from holdfast.stores.memory import MemoryStore
    from holdfast.testing.clock import FakeClock
    from holdfast.testing.jobs import AssertPut, Drain

# Loaded at the start of every project's tests where Holdfast is installed, so nothing of it is imported before a test asks for it.
pytest.register_assert_rewrite("holdfast.testing.conformance")


@pytest.fixture
def holdfast_clock() -> "FakeClock":
    """A clock that stands still until the test moves it."""
    from holdfast.testing.clock import FakeClock  # noqa: PLC0415 - see above

    return FakeClock()


@pytest.fixture
def holdfast_store(holdfast_clock: "FakeClock") -> "Iterator[MemoryStore]":
    """An empty store in memory, on that clock; closed after the test."""
    from holdfast.stores.memory import MemoryStore  # noqa: PLC0415 - see above

    store = MemoryStore(clock=holdfast_clock)
    yield store
    store.close()


@pytest.fixture
def holdfast_client(holdfast_store: "MemoryStore", monkeypatch: pytest.MonkeyPatch) -> "Iterator[ControlPlaneClient]":
    """A client of that store. For the test it is the default one: handles without `client=` and `base_url=` use it, and all workers."""
    from holdfast.arguments.where import redirect_workers  # noqa: PLC0415 - see above
    from holdfast.client import client_for  # noqa: PLC0415 - see above
    from holdfast.connect import shared_as  # noqa: PLC0415 - see above
    from holdfast.ids import new_id  # noqa: PLC0415 - see above

    url = f"memory://{new_id()}"
    monkeypatch.setenv("HOLDFAST_URL", url)
    with shared_as(url, holdfast_store), client_for(url) as client, redirect_workers(client):
        yield client


@pytest.fixture
def drain(holdfast_client: "ControlPlaneClient", holdfast_clock: "FakeClock") -> "Drain":
    """Runs the jobs that wait for workers, here and now: `drain(send)`; with `delayed=True` also those that are due later."""
    from holdfast.testing.jobs import Drain  # noqa: PLC0415 - see above

    return Drain(holdfast_client, holdfast_clock)


@pytest.fixture
def assert_put(holdfast_client: "ControlPlaneClient") -> "AssertPut":
    """Fails unless such a message waits in a queue: `assert_put("mail", {"to": "ann"})`."""
    from holdfast.testing.jobs import AssertPut  # noqa: PLC0415 - see above

    return AssertPut(holdfast_client)
