"""Processes that claim from one queue, some of which are killed and some of which stand still until their leases are over."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from holdfast.testing.claim_log import Claiming, ClaimLog
from tests.verify.claimers import LATE_S

SCRIPT = Path(__file__).with_name("claimers.py")
BETWEEN_S = 0.3


class Crowd:
    """So many processes at work on the queue `jobs`; each time one is killed, another takes its place."""

    def __init__(self, url: str, count: int, work_ms: int) -> None:
        self._url, self._work_ms = url, work_ms
        self._seeds, self._chance = iter(range(10_000)), random.Random(7)
        self._stopped: list[tuple[float, subprocess.Popen[str]]] = []
        self.late = 0
        """How often one settled a message too late."""
        self.running = [self._start() for _ in range(count)]

    def _start(self) -> "subprocess.Popen[str]":
        command = [sys.executable, str(SCRIPT), self._url, "jobs", str(next(self._seeds)), str(self._work_ms)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def work(self, log: ClaimLog, messages: int, kills: int = 0, pauses: int = 0) -> None:
        """Let them work until nothing is left of so many messages, and read the log meanwhile: it is pruned behind them.

        Kills and pauses are spread over the work: each comes when its part of the messages was claimed.
        """
        killed = paused = claimed = seen = 0
        while any(process.poll() is None for process in self.running):
            time.sleep(BETWEEN_S)
            self._wake_some()
            facts = log.read()
            claimed += sum(isinstance(fact, Claiming) for fact in islice(facts, seen, None))
            seen = len(facts)
            while killed * messages < kills * claimed and killed < kills:
                killed += self._kill_one()
            while paused * messages < pauses * claimed and paused < pauses:
                paused += self._stop_one()
        log.read()
        assert (killed, paused) == (kills, pauses), "the work was done before all were killed and stopped"
        assert {process.returncode for process in self.running} == {0}
        for process in self.running:
            self._count(process)

    def _kill_one(self) -> int:
        victim = self.running.pop(self._chance.randrange(len(self.running)))
        assert not victim.poll(), "it had ended by an error"
        victim.kill()
        self._count(victim)
        close(victim)
        self.running.append(self._start())
        return 1

    def _count(self, ended: "subprocess.Popen[str]") -> None:
        assert ended.stdout is not None
        self.late += len(ended.stdout.readlines())

    def _stop_one(self) -> int:
        victim = self._chance.choice(self.running)
        victim.send_signal(signal.SIGSTOP)
        self._stopped.append((time.monotonic() + LATE_S, victim))
        return 1

    def _wake_some(self) -> None:
        while self._stopped and self._stopped[0][0] <= time.monotonic():
            self._stopped.pop(0)[1].send_signal(signal.SIGCONT)

    def end(self) -> None:
        for process in self.running:
            close(process)


def tell(figures: str) -> None:
    """What a run saw, shown with `-s` or where it fails."""
    sys.stderr.write(f"\n{figures}\n")


def close(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def crowd(url: str, count: int, work_ms: int = 0) -> Iterator[Crowd]:
    made = Crowd(url, count, work_ms)
    try:
        yield made
    finally:
        made.end()
