"""`holdfast lock run` while its commands are killed and stopped and the store restarts: never are two programs under one lock at once.

Each program takes a lock of the kernel on a file, which ends with its process, however that ends. Whoever finds it taken has found two.
"""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.redis import RedisServer
from tests.server.processes import Process

pytestmark = [pytest.mark.verify, pytest.mark.timeout(1800)]

COMMANDS = 4
FAULTS = 30
LEASE_S = 2.0
STOPPED_S = 5.0
"""Longer than a lease: another gets the lock meanwhile."""
MIXED = ("kill", "stop", "restart")

PROGRAM = """
import fcntl, os, sys, time
folder = sys.argv[1]
alone = open(folder + "/alone", "a")
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print(os.environ["HOLDFAST_FENCE"], file=open(folder + "/together", "a"))
    raise SystemExit(1)
with open(folder + "/tokens", "a") as tokens:
    tokens.write(os.environ["HOLDFAST_FENCE"] + "\\n")
time.sleep(float(sys.argv[2]))
"""

GUARDED = "from holdfast.cli import main; main()"
BARE = """
import os, subprocess, sys
from holdfast import Lock
command = sys.argv[sys.argv.index("--") + 1 :]
url = sys.argv[-1 - len(command) - 1].removeprefix("--url=")
held = Lock("job", lease_s=2.0, base_url=url).acquire()
subprocess.run(command, env={**os.environ, "HOLDFAST_FENCE": str(held.token)})
held.release()
"""
"""The control: what a script does that takes a lock and starts a program, with nobody who kills the program in time."""


class Crowd:
    """Commands that run the program under one lock again and again."""

    def __init__(self, url: str, folder: Path, code: str, work_s: float) -> None:
        self._arguments = [sys.executable, "-c", code, "lock", "run", "job", f"--lease-s={LEASE_S}", f"--url={url}", "--"]
        self._arguments += [sys.executable, "-c", PROGRAM, str(folder), str(work_s)]
        self._folder = folder
        self.running: list[subprocess.Popen[bytes]] = []
        self._stopped: dict[subprocess.Popen[bytes], float] = {}

    def fill(self) -> None:
        """Start as many as have ended, and let those go on that stood still for long enough."""
        for one in [each for each, since in self._stopped.items() if time.monotonic() - since > STOPPED_S]:
            one.send_signal(signal.SIGCONT)
            del self._stopped[one]
        self.running = [one for one in self.running if one.poll() is None]
        while len(self.running) < COMMANDS:
            self.running.append(subprocess.Popen(self._arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def strike(self, fault: str, chance: random.Random) -> None:
        victim = chance.choice(self.running)
        if victim.poll() is not None:
            return
        victim.send_signal(signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
        if fault == "stop":
            self._stopped[victim] = time.monotonic()

    def close(self) -> None:
        for one in self.running:
            one.send_signal(signal.SIGCONT)
            one.kill()
            one.wait()

    def tokens(self) -> list[int]:
        """Of the programs that began, in the order in which they did."""
        file = self._folder / "tokens"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def together(self) -> list[str]:
        file = self._folder / "together"
        return file.read_text().split() if file.exists() else []


@contextmanager
def served(kind: str, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The URL of a store, and what restarts it."""
    with ExitStack() as stack:
        if kind in ("sqlite", "lmdb"):
            yield f"{kind}:///{folder}/jobs", lambda: None
        elif kind == "postgres":
            postgres = stack.enter_context(PostgresServer())
            yield postgres.url, postgres.restart
        elif kind == "redis":
            redis = stack.enter_context(RedisServer(settings={"appendonly": "yes", "appendfsync": "always"}))
            yield redis.url, redis.restart
        else:
            server = stack.enter_context(Process(folder / "jobs.db"))

            def restart() -> None:
                server.kill()
                server.start()

            yield server.url, restart


def rush(kind: str, folder: Path, code: str, faults: tuple[str, ...], *, work_s: float) -> Crowd:
    """Let them run while one fault follows another; there is time for a program between two of them."""
    chance = random.Random(5)
    with served(kind, folder) as (url, restart):
        crowd = Crowd(url, folder, code, work_s)
        try:
            for number in range(FAULTS):
                until = time.monotonic() + 1.0 + chance.random()
                begun = len(crowd.tokens())
                while time.monotonic() < until or (len(crowd.tokens()) == begun and time.monotonic() < until + 30.0):
                    crowd.fill()
                    time.sleep(0.05)
                fault = faults[number % len(faults)]
                if fault == "restart":
                    restart()
                else:
                    crowd.strike(fault, chance)
        finally:
            crowd.close()
    return crowd


@pytest.mark.parametrize("kind", ["sqlite", "lmdb", "postgres", "redis", "http"])
def test_two_programs_never_run_at_once(kind: str, tmp_path: Path) -> None:
    crowd = rush(kind, tmp_path, GUARDED, MIXED, work_s=0.3)
    tokens = crowd.tokens()
    print(f"{kind}: {len(tokens)} programs, {FAULTS} faults")  # noqa: T201 - the figure, for whoever measures
    assert crowd.together() == []
    assert len(tokens) > FAULTS / 2
    assert all(earlier < later for earlier, later in pairwise(tokens)), "each has a higher token than the one before"


def test_control_a_script_that_only_takes_the_lock_leaves_its_program_running(tmp_path: Path) -> None:
    assert rush("sqlite", tmp_path, BARE, ("kill",), work_s=10.0).together() != []
