"""A line of waiters over processes, on every store: served in the order in which they came, and not held up by the dead."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Semaphore
from holdfast.commands import Changes
from holdfast.records import Event
from tests.stores_by_name import url_of
from tests.verify.crowds import close, tell
from tests.verify.waiters import IN_LINE_S

pytestmark = pytest.mark.verify

SCRIPT = Path(__file__).with_name("waiters.py")
TOPIC = 'lease::["semaphore","gpu"]'
PATIENCE_S = 120.0
PROCESSES, THREADS = 8, 8

Process = subprocess.Popen[str]


@pytest.fixture(params=["sqlite", "lmdb", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def client(url: str) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient(url) as made:
        yield made


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for process in started:
        close(process)


def start(url: str, name: str, threads: int, capacity: int) -> Process:
    command = [sys.executable, str(SCRIPT), url, name, str(threads), str(capacity)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def places(process: Process, count: int) -> dict[str, int]:
    """Where in line the waiters of a process stand, by name, once each of them does."""
    assert process.stdout is not None
    found = [process.stdout.readline().split() for _ in range(count)]
    return {name: int(place) for name, place in found}


def told(client: ControlPlaneClient) -> list[Event]:
    return client.store.execute(Changes(TOPIC, limit=10_000)).events


def holder(event: Event) -> str:
    name: str = json.decode(event.data)["holder"]
    return name


@pytest.mark.parametrize("capacity", [1, 3])
def test_64_waiters_over_8_processes_are_served_in_the_order_of_arrival(
    url: str, client: ControlPlaneClient, processes: list[Process], capacity: int
) -> None:
    first = Semaphore("gpu", capacity, weight=capacity, lease_s=600.0, holder="first", client=client).acquire()
    processes += [start(url, str(number), THREADS, capacity) for number in range(PROCESSES)]
    in_line = {name: place for process in processes for name, place in places(process, THREADS).items()}
    assert len(set(in_line.values())) == PROCESSES * THREADS
    arrived = sorted(in_line, key=lambda name: in_line[name])
    first.release()
    assert [process.wait(PATIENCE_S) for process in processes] == [0] * PROCESSES
    events = told(client)
    served = [holder(event) for event in events if event.event == "acquired"][1:]
    assert sorted(served) == sorted(arrived)
    most, early = inside_and_early(events[1:], arrived, capacity)
    tell(f"{url.partition(':')[0]}, {capacity} at once: {early} of {len(served)} took the room of who came before, {most} inside at most")
    assert most <= capacity
    assert early <= 0.01 * PROCESSES * THREADS


def inside_and_early(events: list[Event], arrived: list[str], capacity: int) -> tuple[int, int]:
    """How many were inside at once, and how many were let in although those who came before did not all fit beside them."""
    used = most = early = 0
    waiting = list(arrived)
    for event in events:
        if event.event != "acquired":
            used = max(0, used - json.decode(event.data)["weight"])
            continue
        before = waiting.index(holder(event))
        used += 1
        most, early = max(most, used), early + (used + before > capacity)
        del waiting[before]
    return most, early


def test_a_first_waiter_that_is_killed_delays_by_its_place_at_most(url: str, client: ControlPlaneClient, processes: list[Process]) -> None:
    first = Semaphore("gpu", 1, lease_s=600.0, holder="first", client=client).acquire()
    processes.append(start(url, "dead", 1, 1))
    in_line = places(processes[0], 1)
    processes.append(start(url, "next", 1, 1))
    assert in_line["dead-0"] < places(processes[1], 1)["next-0"]
    processes[0].send_signal(signal.SIGKILL)
    processes[0].wait()
    first.release()
    assert processes[1].wait(PATIENCE_S) == 0
    events = {(event.event, holder(event)): event.at for event in told(client)}
    waited_us = events["acquired", "next-0"] - events["released", "first"]
    assert waited_us < 2 * IN_LINE_S * 1_000_000
