"""Damaged files: an error of ours, or an answer; never an exception that tells a user nothing. LMDB may end the process instead."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.damage import fill, flip, outcome

ENDS = {-signal.SIGABRT, -signal.SIGBUS, -signal.SIGSEGV}
"""How LMDB ends a process that reads a damaged page: see the guarantees."""


def sqlite_outcomes(folder: Path, seed: int, count: int) -> list[str]:
    url, data, chance = f"sqlite:///{folder}/store", folder / "store", random.Random(seed)
    fill(url)
    whole, found = data.read_bytes(), []
    for _ in range(count):
        flip(data, whole, chance)
        found.append(outcome(url))
    return found


def lmdb_outcomes(folder: Path, seed: int, count: int) -> list[str]:
    """Each run of a program up to the damage that ends it."""
    url, data = f"lmdb:///{folder}/store", folder / "store/data.mdb"
    if not data.exists():
        fill(url)
    whole = data.read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "tests.stores.damage", url, data, str(seed), str(count)], capture_output=True, text=True, check=False
    )
    data.write_bytes(whole)
    assert done.returncode == 0 or done.returncode in ENDS, done.stderr
    return [*done.stdout.splitlines(), *(["ended"] if done.returncode else [])]


def check(outcomes: list[str]) -> None:
    assert [one for one in outcomes if one.startswith("raw")] == []
    assert "refused" in outcomes, "control: some damage is noticed"


def test_a_damaged_sqlite_file_gives_errors_of_ours_or_answers(tmp_path: Path) -> None:
    check(sqlite_outcomes(tmp_path, seed=1, count=15))


def test_a_damaged_lmdb_environment_gives_errors_of_ours_or_answers_or_ends_the_process(tmp_path: Path) -> None:
    check([one for seed in range(2) for one in lmdb_outcomes(tmp_path, seed, 5)])


@pytest.mark.verify
@pytest.mark.parametrize("seed", range(10))
def test_sqlite_with_much_damage(tmp_path: Path, seed: int) -> None:
    check(sqlite_outcomes(tmp_path, 100 + seed, 100))


@pytest.mark.verify
@pytest.mark.parametrize("first", range(100, 160, 10))
def test_lmdb_with_much_damage(tmp_path: Path, first: int) -> None:
    check([one for seed in range(first, first + 10) for one in lmdb_outcomes(tmp_path, seed, 5)])
