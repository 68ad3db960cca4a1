"""`holdfast worker`: from a name to a worker that runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import ControlPlaneClient, Queue

APP = """
from pathlib import Path
from holdfast import worker

@worker("mail", concurrency=2)
def send(value):
    Path(value).touch()

def plain(value):
    Path(value).touch()
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "app.py").write_text(APP)
    return f"sqlite:///{tmp_path}/jobs.db?durability=process"


def command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", "from holdfast.cli import main; main()", "worker", *arguments]
    settings = {**os.environ, "HOLDFAST_URL": f"sqlite:///{folder}/jobs.db?durability=process"}
    return subprocess.Popen(program, cwd=folder, env=settings, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_workers_and_plain_functions_run_until_their_queues_are_empty(tmp_path: Path, url: str) -> None:
    with ControlPlaneClient(url) as client:
        Queue[str]("mail", client=client).put_many(["a", "b"])
    with command(tmp_path, "app:send", "--until-empty") as running:
        assert running.wait(60) == 0
    assert [(tmp_path / name).exists() for name in "ab"] == [True, True]
    with ControlPlaneClient(url) as client:
        Queue[str]("more", client=client).put("c")
    with command(tmp_path, "app:plain", "--queue", "more", "--concurrency", "3", "--until-empty", "--url", url) as running:
        assert running.wait(60) == 0
    assert (tmp_path / "c").exists()


def test_a_signal_ends_it(tmp_path: Path, url: str) -> None:
    with command(tmp_path, "app:send") as running, ControlPlaneClient(url) as client:
        Queue[str]("mail", client=client).put("a")
        while not (tmp_path / "a").exists():
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
        assert Queue[str]("mail", client=client).stats().total == 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [("app:plain", "say which --queue"), ("app:nothing", "nothing"), ("app", "write package.module:name"), ("nowhere:send", "nowhere")],
)
def test_what_is_no_worker_is_refused_with_the_reason(tmp_path: Path, url: str, name: str, reason: str) -> None:
    with command(tmp_path, name) as running:
        _, error = running.communicate(timeout=60)
    assert running.returncode == 2
    assert reason in error
