"""Lock holders stopped until another holds their lock and then continued, or killed, two thousand times.

They write on without looking. What checks tokens accepts no write under a stale one; what does not, accepts some: the control.
`HOLDFAST_VERIFY_PAUSES` is how often holders are disturbed.
"""

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from holdfast._sync.handles.lock import Lock
from holdfast._sync.handles.mapping import Dict
from holdfast.client import ControlPlaneClient
from holdfast.errors import Closed
from holdfast.results import LeaseHolder
from tests.verify.holders import hold_and_write, make_tables, stale_writes

pytestmark = [pytest.mark.verify, pytest.mark.timeout(1800)]

DISTURBANCES = int(os.environ.get("HOLDFAST_VERIFY_PAUSES", "2000"))
NAMES = ["a", "b", "c", "d"]
HOLDERS = 3
"""How many processes want each lock."""

KILLS = 0.1
"""The part of the disturbances that are kills."""

STUCK_S = 2.0
"""A holder stopped while it writes to the store stops everyone: it goes on after this long, and does not count."""


class Crew:
    """The processes that want one lock."""

    def __init__(self, url: str, table: Path, name: str) -> None:
        self._start = multiprocessing.get_context("forkserver").Process
        self._args = (url, str(table), name)
        self._processes: dict[int, BaseProcess] = {}
        for _ in range(HOLDERS):
            self.add()

    def add(self) -> None:
        process = self._start(target=hold_and_write, args=self._args, daemon=True)
        process.start()
        assert process.pid is not None
        self._processes[process.pid] = process

    def kill(self, pid: int) -> None:
        process = self._processes.pop(pid)
        process.kill()
        process.join()

    def end(self) -> None:
        for pid in [*self._processes]:
            self.kill(pid)

    def stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)

    def go_on(self, pid: int) -> None:
        os.kill(pid, signal.SIGCONT)


def wait_for_holder(lock: Lock, after: int, patience_s: float) -> LeaseHolder | None:
    """Whoever holds the lock under a higher token."""
    pause = threading.Event()
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        holder = lock.holding()
        if holder is not None and holder.token > after:
            return holder
        pause.wait(0.002)
    return None


def disturb(lock: Lock, crew: Crew, times: int, seed: int) -> int:
    """Stop or kill whoever holds the lock, until another does; answer how often that were kills."""
    chance = random.Random(seed)
    kills = 0
    token = 0
    while times:
        holder = wait_for_holder(lock, token, 60.0)
        assert holder is not None, "nobody took the lock for a minute"
        pid, token = int(holder.holder), holder.token
        if chance.random() < KILLS:
            crew.kill(pid)
            crew.add()
            kills += 1
            times -= 1
            continue
        crew.stop(pid)
        followed = wait_for_holder(lock, token, STUCK_S)
        crew.go_on(pid)
        times -= followed is not None
    return kills


class Witness:
    """Counts, in the order of the events, writes to the dict that were accepted after one under a higher token."""

    def __init__(self, shared: Dict[int]) -> None:
        self.seen = 0
        self.stale = 0
        self._shared = shared
        self._thread = threading.Thread(target=self._follow)

    def _follow(self) -> None:
        highest: dict[str, int] = {}
        with suppress(Closed):
            for event in self._shared.watch():
                if event.event == "written":
                    name, token = event.data["key"], event.data["value"]
                    self.seen += 1
                    self.stale += token < highest.get(name, 0)
                    highest[name] = max(token, highest.get(name, 0))

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(60)


@contextmanager
def crews_on(url: str, table: Path) -> Iterator[list[Crew]]:
    crews: list[Crew] = []
    try:
        crews.extend(Crew(url, table, name) for name in NAMES)
        yield crews
    finally:
        for crew in crews:
            crew.end()


def test_no_stale_write_is_accepted_by_what_checks_tokens(tmp_path: Path) -> None:
    multiprocessing.get_context("forkserver").set_forkserver_preload(["tests.verify.holders"])
    url = f"sqlite:///{tmp_path}/store?durability=process"
    table = tmp_path / "table"
    make_tables(table, NAMES)
    with ControlPlaneClient(url) as client:
        witness = Witness(Dict.from_name("shared", client=client))
        witness.start()
        share = -(-DISTURBANCES // len(NAMES))
        with crews_on(url, table) as crews, ThreadPoolExecutor(len(NAMES)) as drivers:
            locks = [Lock(name, client=client) for name in NAMES]
            kills = sum(drivers.map(disturb, locks, crews, [share] * len(NAMES), range(len(NAMES))))
    witness.join()
    shown = f"{share * len(NAMES)} disturbances, {kills} of them kills; {witness.seen} writes to the dict"
    assert kills > 0, shown
    assert witness.seen > 0, shown
    assert witness.stale == 0, shown
    assert stale_writes(table, "fenced") == 0, shown
    assert stale_writes(table, "bare") > 0, f"the control: without a fence, nothing stale was written in {shown}"
