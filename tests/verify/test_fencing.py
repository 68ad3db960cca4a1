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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
CREWS = 4
HOLDERS = 3
"""How many processes want the lock of each crew."""

KILLS = 0.1
"""The part of the disturbances that are kills."""

STUCK_S = 1.0
"""A holder stopped in the middle of a write to the store stops its crew: it goes on after this long, and does not count."""


class Crew:
    """The processes that want one lock, with a store and a table of their own, so that no crew waits for another."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.url = f"sqlite:///{folder}/store?durability=process"
        self.table = folder / "table"
        make_tables(self.table)
        self._start = multiprocessing.get_context("forkserver").Process
        self._processes: dict[int, BaseProcess] = {}

    def add(self) -> None:
        process = self._start(target=hold_and_write, args=(self.url, str(self.table)), daemon=True)
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


def disturb(crew: Crew, times: int, seed: int) -> tuple[int, "Witness"]:
    """Stop or kill whoever holds the lock, until another does; answer how often it was killed, and what was written meanwhile."""
    with ControlPlaneClient(crew.url) as client:
        witness = Witness(Dict.from_name("shared", client=client))
        witness.start()
        try:
            for _ in range(HOLDERS):
                crew.add()
            kills = disturb_holders(Lock("row", client=client), crew, times, random.Random(seed))
        finally:
            crew.end()
    witness.join()
    return kills, witness


def disturb_holders(lock: Lock, crew: Crew, times: int, chance: random.Random) -> int:
    kills = token = 0
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
        highest = 0
        with suppress(Closed):
            for event in self._shared.watch(key="row"):
                if event.event == "written":
                    self.seen += 1
                    self.stale += event.data["value"] < highest
                    highest = max(highest, event.data["value"])

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(60)


def test_no_stale_write_is_accepted_by_what_checks_tokens(tmp_path: Path) -> None:
    multiprocessing.get_context("forkserver").set_forkserver_preload(["tests.verify.holders"])
    crews = [Crew(tmp_path / f"crew {n}") for n in range(CREWS)]
    share = -(-DISTURBANCES // CREWS)
    with ThreadPoolExecutor(CREWS) as drivers:
        outcomes = [*drivers.map(disturb, crews, [share] * CREWS, range(CREWS))]
    kills = sum(kills for kills, _ in outcomes)
    seen = sum(witness.seen for _, witness in outcomes)
    shown = f"{share * CREWS} disturbances, {kills} of them kills, {seen} writes to the dicts"
    assert kills > 0, shown
    assert seen > 0, shown
    assert sum(witness.stale for _, witness in outcomes) == 0, shown
    assert sum(stale_writes(crew.table, "fenced") for crew in crews) == 0, shown
    assert sum(stale_writes(crew.table, "bare") for crew in crews) > 0, f"the control: nothing stale was written without a fence in {shown}"
