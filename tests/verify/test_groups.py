"""Groups, limits and rates under processes that are killed and wake up too late, judged by the log alone."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import Queue, Rate, connect
from holdfast.client import ControlPlaneClient
from holdfast.commands import Count, Groups
from holdfast.stores import Store
from holdfast.testing.claim_log import ClaimLog, out_of_order, over_limit, over_rate, used_of_rate
from tests.stores_by_name import url_of

pytestmark = [pytest.mark.verify, pytest.mark.timeout(1800)]

SCRIPT = Path(__file__).with_name("claimers.py")
PROCESSES = 8
KILLS = 20

STORES = ["sqlite", "lmdb", "postgres", "redis"]


@contextmanager
def claimers(url: str, count: int, kills: int, work_ms: int = 0) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """So many processes at work on the queue `jobs`; each time one is killed, another takes its place."""
    seeds = iter(range(10_000))

    def start() -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, SCRIPT, url, "jobs", str(next(seeds)), str(work_ms)])

    running = [start() for _ in range(count)]
    chance = random.Random(7)
    try:
        for _ in range(kills):
            time.sleep(0.3)
            victim = running.pop(chance.randrange(count))
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            running.append(start())
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


def follow(log: ClaimLog, processes: list["subprocess.Popen[bytes]"]) -> None:
    """Read the log while they work: it is pruned behind them."""
    while any(process.poll() is None for process in processes):
        log.read()
        time.sleep(0.05)
    assert [process.returncode for process in processes] == [0] * len(processes)
    log.read()


def left_behind(store: Store) -> tuple[int, list[str]]:
    """Messages that are still there, and groups that nothing needs any more."""
    stats = store.execute(Count("jobs"))
    return stats.ready + stats.leased + stats.buffered, [lane.name for lane in store.execute(Groups("jobs")).lanes]


@pytest.mark.parametrize("kind", STORES)
def test_strict_groups_keep_their_order_through_kills_and_late_settlements(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    with ControlPlaneClient(url) as client:
        jobs: Queue[int] = Queue("jobs", client=client)
        jobs.configure(groups="strict")
        for start in range(0, 20_000, 1_000):
            with client.together() as step:
                for n in range(start, start + 1_000):
                    step.put("jobs", n, group=f"g{n % 1_000}")
        log = ClaimLog(client.store, "jobs")
        with claimers(url, PROCESSES, KILLS) as processes:
            follow(log, processes)
        assert out_of_order(log.facts) == []
        assert left_behind(client.store) == (0, [])


@pytest.mark.parametrize("kind", STORES)
def test_limits_are_never_exceeded_and_a_dead_worker_frees_its_slots(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    with ControlPlaneClient(url) as client:
        jobs: Queue[int] = Queue("jobs", client=client)
        jobs.configure(groups="fair", group_limit=2, limit=12)
        for group in range(50):
            jobs.put_many(range(100), group=f"g{group}")
        log = ClaimLog(client.store, "jobs")
        with claimers(url, PROCESSES, KILLS, work_ms=2) as processes:
            follow(log, processes)
        assert over_limit(log.facts, 12, group_limit=2) == []
        assert left_behind(client.store) == (0, [])


@pytest.mark.parametrize("kind", STORES)
def test_a_rate_is_kept_to_the_microsecond_and_used(kind: str, tmp_path: Path) -> None:
    url, rate = url_of(kind, tmp_path), Rate(100, per_s=1.0, burst=5)
    store = connect(url)
    with ControlPlaneClient.on(store) as client:
        jobs: Queue[int] = Queue("jobs", client=client)
        jobs.configure(rate=rate)
        jobs.put_many(range(2_000))
        log = ClaimLog(store, "jobs")
        with claimers(url, PROCESSES, 0) as processes:
            follow(log, processes)
        assert over_rate(log.facts, rate) == []
        assert used_of_rate(log.facts, rate) >= 0.98
