"""Sixteen processes on the same groups of PostgreSQL for ten minutes: none of them is ended for a deadlock, and nothing is left behind."""

import time
from collections.abc import Iterator
from multiprocessing import get_context

import pytest

from holdfast.commands import Configure, Groups
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.servers.postgres import PostgresServer
from tests.stores.postgres.test_lane_deadlocks import QUEUES, deadlocks, drained, work
from tests.verify.crowds import tell

pytestmark = [pytest.mark.verify, pytest.mark.timeout(1_800)]

PROCESSES = 16
SECONDS = 600.0
SETTINGS: tuple[dict[str, object], ...] = ({"groups": "fair", "group_limit": 3}, {"groups": "strict"})


def work_on(url: str, seed: int, until: float) -> None:
    """Work for so long: a seed after the other."""
    while time.time() < until:
        work(url, seed)
        seed += PROCESSES


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One of its own, whose log says who waited for whom."""
    with PostgresServer() as started:
        yield started


def told_of_deadlocks(server: PostgresServer) -> list[str]:
    """What the log says of each deadlock."""
    text = server._program.log.read_text(errors="replace")
    return [part[:2_000] for part in text.split("deadlock detected")[1:]]


def test_sixteen_processes_neither_deadlock_nor_leave_anything_behind(server: PostgresServer) -> None:
    url = server.url
    store = PostgresStore(url)
    for queue, settings in zip(QUEUES, SETTINGS, strict=True):
        store.execute(Configure("queue", queue, **settings))  # type: ignore[arg-type] # the settings of a queue
    before, until = deadlocks(store), time.time() + SECONDS
    context = get_context("spawn")
    processes = [context.Process(target=work_on, args=(url, seed, until)) for seed in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(2 * SECONDS)
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    tell(f"{drained(store):,} messages were left, and claimed afterwards")
    assert [lane for queue in QUEUES for lane in store.execute(Groups(queue)).lanes] == []
    assert told_of_deadlocks(server) == []
    assert deadlocks(store) == before
    store.close()
