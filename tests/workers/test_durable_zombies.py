"""Zombies: a process that was stopped while another took its job over records nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import Raw

from holdfast import ControlPlaneClient
from holdfast.commands import Claim, Item, Put
from tests.stores_by_name import url_of

ROOT = Path(__file__).parents[2]


def accepted(url: str, guard: str, processes: int, count: int = 1) -> int:
    """How many of the records of zombies were accepted; each process holds so many jobs when it stops."""
    program, found = [sys.executable, "-m", "tests.workers.zombie", url, guard, str(count)], 0
    with ControlPlaneClient(url) as client:
        store = client.store
        for number in range(processes):
            ids = {f"job-{guard}-{number}-{place}" for place in range(count)}
            store.execute(Put("jobs", [Item(one, Raw(b"1")) for one in sorted(ids)]))
            with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as zombie:
                assert zombie.stdout is not None
                assert zombie.stdout.readline() == f"claimed {count}\n"
                _, status = os.waitpid(zombie.pid, os.WUNTRACED)
                assert os.WIFSTOPPED(status)
                deadline = time.monotonic() + 30.0
                # The new holder has not written the steps yet.
                while ids:
                    ids -= {message.id for message in store.execute(Claim("jobs", "new holder", 600.0, count)).messages}
                    assert time.monotonic() < deadline
                os.kill(zombie.pid, signal.SIGCONT)
                found += int(zombie.stdout.readline().split()[0])
    return found


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_zombie_records_a_step_and_the_controls_show_that_some_would(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    assert accepted(url, "claim", 2, 10) == 0
    # Controls: a fence alone protects no key that the new holder has not written, and no guard protects nothing.
    assert accepted(url, "fence", 1, 10) == 10
    assert accepted(url, "none", 1, 10) == 10
