"""Zombies: a process that was stopped while another took its job over records nothing."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import Raw

from holdfast import ControlPlaneClient
from holdfast.commands import Claim, Item, Length, Put
from holdfast.stores import Store
from holdfast.workers.steps.rows import steps_of
from tests.stores_by_name import url_of

ROOT = Path(__file__).parents[2]
AT_ONCE = 50
"""How many processes stand still at the same time."""


def accepted(url: str, guard: str, zombies: int) -> int:
    """How many of the records of zombies were accepted; each is a process that holds one job when it stops."""
    with ControlPlaneClient(url) as client:
        return sum(_crew(client.store, url, guard, range(first, min(first + AT_ONCE, zombies))) for first in range(0, zombies, AT_ONCE))


def _crew(store: Store, url: str, guard: str, numbers: range) -> int:
    for number in numbers:
        store.execute(Put(f"jobs-{number}", [Item(guard, Raw(b"1"))]))
    program = [sys.executable, "-m", "tests.workers.zombie", url, guard, str(numbers.start), str(numbers.stop)]
    with subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == f"{len(numbers)} stopped\n"
        deadline = time.monotonic() + 30.0
        for number in numbers:  # The new holder has not written the step yet.
            while not store.execute(Claim(f"jobs-{number}", "new holder", 600.0)).messages:
                assert time.monotonic() < deadline
        refused, taken = map(int, parent.communicate("go on\n")[0].split())
    assert refused + taken == len(numbers)
    recorded = sum(store.execute(Length(steps_of(f"jobs-{number}"))) > 0 for number in numbers)
    assert recorded == taken, "what the zombies were told is not what the store has"
    return taken


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_zombie_records_a_step(kind: str, tmp_path: Path) -> None:
    assert accepted(url_of(kind, tmp_path), "claim", 20) == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_control_a_fence_alone_protects_no_key_that_the_new_holder_has_not_written_and_no_guard_nothing(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    assert accepted(url, "fence", 5) == 5
    assert accepted(url, "none", 5) == 5
