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
from tests.workers.mortal_store import Fate

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0


def survives(url: str, file: Path, number: int, where: str = "commands") -> bool:
    """Whether the process was killed at its n-th command or effect; the job ends well in any case."""
    program = [sys.executable, "-m", "tests.workers.mortal_durable", url, str(file)]
    killed = subprocess.run([*program, str(number), where], cwd=ROOT, check=False, timeout=LIMIT_S).returncode == -9
    with ControlPlaneClient(url) as client:
        job = tasks_of(client, file, Fate()).find("order").job(ID)
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


@pytest.mark.parametrize(("number", "begun"), [(1, 2), (2, 1)])
def test_a_process_killed_inside_an_effect_repeats_only_what_may_be_repeated(number: int, begun: int, tmp_path: Path) -> None:
    """The first effect is that of a plain step, which happens at least once; the second is that of a step with `once=True`."""
    assert survives(url_of("sqlite", tmp_path), tmp_path / "effects", number, "effects")
    assert notes(tmp_path / "effects").count("begin") == begun
