"""Zombies: a process that was stopped while another took its job over records nothing."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from msgspec import Raw

from holdfast import ControlPlaneClient
from holdfast.commands import Claim, Item, Put
from tests.stores_by_name import url_of

ROOT = Path(__file__).parents[2]


def outcomes(url: str, guard: str, count: int) -> Counter[str]:
    """What became of the records of so many zombies."""
    program = [sys.executable, "-m", "tests.workers.zombie", url, guard]
    found: Counter[str] = Counter()
    with ControlPlaneClient(url) as client:
        store = client.store
        for number in range(count):
            store.execute(Put("jobs", [Item(f"job-{guard}-{number}", Raw(b"1"))]))
            with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as zombie:
                assert zombie.stdout is not None
                assert zombie.stdout.readline() == "claimed\n"
                _, status = os.waitpid(zombie.pid, os.WUNTRACED)
                assert os.WIFSTOPPED(status)
                deadline = time.monotonic() + 30.0
                # The new holder has not written the step yet.
                while not (taken := store.execute(Claim("jobs", "new holder", 60.0)).messages):
                    assert time.monotonic() < deadline
                os.kill(zombie.pid, signal.SIGCONT)
                found[zombie.stdout.readline().strip()] += 1
                assert taken[0].id == f"job-{guard}-{number}"
    return found


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_zombie_records_a_step_and_the_controls_show_that_some_would(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    assert outcomes(url, "claim", 5) == {"refused": 5}
    # Controls: a fence alone protects no key that the new holder has not written, and no guard protects nothing.
    assert outcomes(url, "fence", 2) == {"accepted": 2}
    assert outcomes(url, "none", 2) == {"accepted": 2}
