"""SIGTERM while many jobs run: each is done, or ready again at once, and none has burnt an attempt."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Queue, Worker
from tests.stores_by_name import url_of

ROOT = Path(__file__).parents[2]

AHEAD = 30
LATER = 20
"""How many jobs are held ahead, where any are, and how many more there are."""


@pytest.mark.parametrize(
    ("store", "kind", "at_once", "ahead"),
    [
        ("sqlite", "threads", 100, AHEAD),
        ("sqlite", "tasks", 100, 0),
        ("sqlite", "processes", 6, AHEAD),
        pytest.param("sqlite", "threads", 100, 0, marks=pytest.mark.verify),
        pytest.param("sqlite", "processes", 100, AHEAD, marks=pytest.mark.verify),
        *(
            pytest.param(store, kind, 100, AHEAD, marks=pytest.mark.verify)
            for store in ("redis", "postgres")
            for kind in ("threads", "tasks", "processes")
        ),
    ],
)
def test_sigterm_burns_no_attempt(tmp_path: Path, store: str, kind: str, at_once: int, ahead: int) -> None:
    url, began = url_of(store, tmp_path), tmp_path / "began"
    began.mkdir()
    jobs = range(at_once + ahead + LATER)
    arguments = [str(began), url, kind, str(at_once), str(len(jobs)), *([str(ahead)] if ahead else [])]
    program = [sys.executable, "-m", "tests.workers.stoppable", *arguments]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "running\n"
        with ControlPlaneClient(url) as client:
            assert Queue[int]("jobs", client=client).stats().leased == at_once + ahead
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 0
            messages = {message.value: message for message in Queue[int]("jobs", client=client).browse(limit=1_000)}
            stats = Queue[int]("jobs", client=client).stats()
            assert Worker.list(client=client) == []
    assert (stats.leased, stats.dead, stats.delayed) == (0, 0, 0)
    assert {message.failures for message in messages.values()} == {0}
    # Those that could finish within the grace time did; what was held ahead may have begun as they made room for it.
    done = set(jobs) - set(messages)
    assert {value for value in jobs[:at_once] if value % 3 == 0} <= done <= {value for value in jobs[: at_once + ahead] if value % 3 == 0}
    assert {messages[value].attempts for value in jobs[-LATER:]} == {0}, "never claimed"
    assert done <= {int(file.name) for file in began.iterdir() if file.name != "stopping"}
