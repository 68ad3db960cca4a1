"""SIGTERM while a hundred jobs run: each is done, or ready again at once, and none has burnt an attempt."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Queue, Worker

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["threads", "tasks"])
def test_sigterm_burns_no_attempt(tmp_path: Path, kind: str) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db?durability=process"
    program = [sys.executable, "-m", "tests.workers.stoppable", url, kind]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "running\n"
        with ControlPlaneClient(url) as client:
            assert Queue[int]("jobs", client=client).stats().leased == 100
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 0
            messages = Queue[int]("jobs", client=client).browse(limit=1_000)
            stats = Queue[int]("jobs", client=client).stats()
            assert Worker.list(client=client) == []
    assert (stats.leased, stats.dead, stats.delayed) == (0, 0, 0)
    assert {message.failures for message in messages} == {0}
    # Those that could finish within the grace time did; the fifty that had not begun were never claimed.
    assert {message.value for message in messages} == {value for value in range(100) if value % 3} | set(range(100, 150))
    assert {message.attempts for message in messages if message.value >= 100} == {0}
