"""A line of waiters over processes: served in the order in which they came, and not held up by the dead."""

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Semaphore
from holdfast.commands import Changes
from holdfast.records import Event

SCRIPT = Path(__file__).with_name("waiters.py")
TOPIC = 'lease::["semaphore","gpu"]'
PATIENCE_S = 60.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def client(path: Path) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient(f"sqlite:///{path}") as made:
        yield made


def start(client: ControlPlaneClient, name: str, threads: int, capacity: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, SCRIPT, client.url, name, str(threads), str(capacity)])


def line(path: Path) -> list[str]:
    """Who waits, the first first."""
    with closing(sqlite3.connect(path)) as reader:
        return [holder for (holder,) in reader.execute("select holder from holdfast_shares where place > 0 order by place")]


def until_in_line(path: Path, count: int) -> list[str]:
    deadline = time.monotonic() + PATIENCE_S
    while len(found := line(path)) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} stand in line"
        time.sleep(0.01)
    return found


def told(client: ControlPlaneClient) -> list[Event]:
    return client.store.execute(Changes(TOPIC, limit=10_000)).events


def holder(event: Event) -> str:
    name: str = json.decode(event.data)["holder"]
    return name


@pytest.mark.verify
@pytest.mark.parametrize("capacity", [1, 3])
def test_64_waiters_over_8_processes_are_served_in_the_order_of_arrival(path: Path, client: ControlPlaneClient, capacity: int) -> None:
    first = Semaphore("gpu", capacity, weight=capacity, holder="first", client=client).acquire()
    processes = [start(client, str(number), 8, capacity) for number in range(8)]
    arrived = until_in_line(path, 64)
    first.release()
    assert [process.wait(PATIENCE_S) for process in processes] == [0] * 8
    events = told(client)
    served = [holder(event) for event in events if event.event == "acquired"][1:]
    assert sorted(served) == sorted(arrived)
    used = most = 0
    for event in events:
        used += json.decode(event.data)["weight"] * (1 if event.event == "acquired" else -1)
        most = max(most, used)
    assert most <= capacity
    late = sum(abs(place - arrived.index(name)) >= capacity for place, name in enumerate(served))
    assert late <= 0.01 * 64, f"{late} of 64 were not served in turn, beyond those who fit together"


@pytest.mark.verify
def test_a_first_waiter_that_is_killed_delays_by_its_place_at_most(path: Path, client: ControlPlaneClient) -> None:
    first = Semaphore("gpu", 1, holder="first", client=client).acquire()
    dead = start(client, "dead", 1, 1)
    until_in_line(path, 1)
    next_one = start(client, "next", 1, 1)
    assert until_in_line(path, 2) == ["dead-0", "next-0"]
    dead.send_signal(signal.SIGKILL)
    dead.wait()
    first.release()
    assert next_one.wait(PATIENCE_S) == 0
    events = {(event.event, holder(event)): event.at for event in told(client)}
    waited_us = events["acquired", "next-0"] - events["released", "first"]
    assert waited_us < 2 * 2_000_000, "the place of the dead lasts for two seconds"
