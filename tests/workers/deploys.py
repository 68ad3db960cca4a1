"""Runs the program of rolling workers, and reads what it left behind."""

import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from holdfast import ControlPlaneClient, Queue
from holdfast.records import HISTORY
from tests.workers.rolling import CODES, EXTENDED, QUEUES, VERSIONED

ROOT = Path(__file__).parents[2]


class Deployed(Struct):
    """What a deploy did with its jobs, by their ids."""

    put: int
    lost: set[str] = set()
    """Put, and run by nobody."""
    strange: set[str] = set()
    """Run by code that does not have them."""
    burnt: set[str] = set()
    """An attempt of which failed: no function of the program ever fails."""
    dead: set[str] = set()
    left: int = 0


def deployed(url: str, folder: Path, rounds: int, first: str, *how: str, timeout_s: float = 110.0) -> Deployed:
    """Deploy under kills, version by version, and look at every job."""
    program = [sys.executable, "-m", "tests.workers.rolling", url, str(folder), str(rounds), first, *how]
    subprocess.run(program, cwd=ROOT, check=True, timeout=timeout_s)
    put = {*(folder / "put").read_text().split(), "late-new-8"}
    found = Deployed(len(put))
    ran = [line.split(" ") for line in (folder / "ran").read_text().splitlines()]
    found.lost = put - {job for job, *_ in ran}
    found.strange = {job for job, code, *_ in ran if not _has(code, job)}
    found.burnt = {job for job, _, failures, hows in ran if _is_burnt(int(failures), hows.split("+"))}
    with ControlPlaneClient(url) as client:
        for name in QUEUES:
            queue = Queue[int](name, client=client)
            found.dead |= {letter.id for letter in queue.dead_letters()}
            found.left += queue.stats().total - queue.stats().dead
    return found


def _is_burnt(failures: int, hows: list[str]) -> bool:
    """Whether anything but the kills counts as a failure; a long history has forgotten the first of them."""
    return "failed" in hows or (len(hows) < HISTORY and failures != hows.count("expired"))


def _has(code: str, id: str) -> bool:
    """Whether this code has the task of the job, in its version and with its parameters."""
    _, put_by, number = id.split("-")
    foreign = {"new": {*VERSIONED}, "old": {*VERSIONED, *EXTENDED}}[code]
    return int(number) in CODES[code] and (code == put_by or int(number) not in foreign)
