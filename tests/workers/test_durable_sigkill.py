"""Real processes that are killed at every command of a durable job."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Queue
from holdfast.commands import Read
from tests.stores_by_name import url_of
from tests.workers.mortal_durable import ID, notes, tasks_of

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0


def survives(url: str, file: Path, number: int) -> bool:
    """Whether the process was killed at its n-th command; the job ends well in any case."""
    program = [sys.executable, "-m", "tests.workers.mortal_durable", url, str(file)]
    killed = subprocess.run([*program, str(number)], cwd=ROOT, check=False, timeout=LIMIT_S).returncode == -9
    with ControlPlaneClient(url) as client:
        job = tasks_of(client, file).find("order").job(ID)
        deadline = time.monotonic() + LIMIT_S
        while job.status().state != "done":
            assert time.monotonic() < deadline, job.status()
            subprocess.run([*program, "0"], cwd=ROOT, check=True, timeout=LIMIT_S)
        assert job.result(timeout_s=0) == ["begin", "charge", "ann", 30]
        assert notes(file).count("charge") == 1
        assert [message.value for message in Queue[str]("follow-ups", client=client).browse()] == [ID]
        assert not client.store.execute(Read("default-steps")).entries
        assert not client.store.execute(Read("default-signals")).entries
    return killed


@pytest.mark.parametrize(("kind", "numbers"), [("sqlite", [2, -3, 5, -7, 9]), ("postgres", [3, -6])])
def test_a_killed_process_loses_and_repeats_nothing(kind: str, numbers: list[int], tmp_path: Path) -> None:
    killed = 0
    for number in numbers:
        folder = tmp_path / str(number)
        folder.mkdir()
        killed += survives(url_of(kind, folder), folder / "effects", number)
    assert killed >= len(numbers) - 1
