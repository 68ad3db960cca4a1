"""Runs the program of mortal workers, and reads what it left behind."""

import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[2]


def effects_of_killed_workers(folder: Path, rounds: int, kind: str, timeout_s: float = 110.0, url: str = "") -> Counter[str]:
    """How often the effect of each job happened, after as many workers were killed as there were rounds."""
    program = [sys.executable, "-m", "tests.workers.mortal", str(folder), str(rounds), kind, url]
    subprocess.run(program, cwd=ROOT, check=True, timeout=timeout_s)
    with closing(sqlite3.connect(folder / "effects.db")) as file:
        return Counter(key for (key,) in file.execute("select key from effects"))


def effects_are_once(folder: Path, rounds: int, timeout_s: float = 110.0, url: str = "") -> None:
    """Every job that was put has happened, and none of them twice."""
    effects = effects_of_killed_workers(folder, rounds, "once", timeout_s, url)
    put = {f"job-{number}" for number in range(rounds)}
    # Killed before its put, a round has put nothing.
    surely = {f"job-{number}" for number in range(rounds) if number % 10 != 0}
    assert set(effects.values()) == {1}
    assert surely - set(effects) == set(), "lost"
    assert set(effects) - put == set()


def survivors(url: str, file: Path) -> Counter[int]:
    """How often each job of the crowd was run."""
    subprocess.run([sys.executable, "-m", "tests.workers.crowd", url, str(file)], cwd=ROOT, check=True, timeout=110.0)
    return Counter(int(line) for line in file.read_text().splitlines())
