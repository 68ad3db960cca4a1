import json
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import urllib3

from holdfast.cli.demo.output import JsonOutput
from holdfast.cli.demo.run import ProcessFailed, plan_work, run_demo

HOLDFAST = [sys.executable, "-c", "from holdfast.cli import main; main()", "demo"]
SMALL = ["--messages", "8", "--workers", "3"]
GUARD_S = 90
"""Ends a test that hangs; no test waits so long for anything."""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which the demo puts its files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def start(*arguments: str) -> subprocess.Popen[str]:
    # The workers inherit standard error, so its end means that all of them have ended.
    return subprocess.Popen([*HOLDFAST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdout is not None
    assert any(words in line for line in process.stdout)


def test_nothing_is_lost_and_the_counts_add_up(temporary: Path) -> None:
    answer = subprocess.run([*HOLDFAST, "--json", *SMALL], capture_output=True, text=True, check=False, timeout=GUARD_S)
    assert (answer.returncode, answer.stderr) == (0, "")
    counts = json.loads(answer.stdout)
    assert (counts["put"], counts["done"]) == (8, 8)
    assert (counts["lost"], counts["accepted_twice"], counts["unfinished"]) == (0, 0, 0)
    assert counts["redelivered"] >= 2
    assert counts["refused"] >= 2
    assert list(temporary.iterdir()) == []


def test_workers_that_skip_the_fence_are_found_out(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = run_demo(JsonOutput(), messages=8, workers=3, seed=1, fenced=False)
    assert counts.accepted_twice >= 1
    assert counts.exit_code == 1
    assert json.loads(capsys.readouterr().out)["accepted_twice"] == counts.accepted_twice


def test_the_story_is_told_in_plain_lines(temporary: Path) -> None:
    answer = subprocess.run([*HOLDFAST, *SMALL], capture_output=True, text=True, check=False, timeout=GUARD_S)
    assert answer.returncode == 0
    assert "\x1b" not in answer.stdout
    parts = [
        "killed (SIGKILL)",
        "paused (SIGSTOP)",
        "wakes up (SIGCONT)",
        "tries to finish",
        "tries to write",
        "Nothing was lost",
        "Read next: ",
    ]
    assert [part for part in parts if part not in answer.stdout] == []


def test_a_terminal_shows_it_live(temporary: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen([*HOLDFAST, *SMALL], stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = read_terminal(ours)
    os.close(ours)
    assert process.returncode == 0
    assert "\x1b[" in shown
    assert "8/8" in shown
    assert "Nothing was lost" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"accepted twice *\r\n *\r\n *worker +done", plain), "a blank line stands between the two tables"


def read_terminal(descriptor: int) -> str:
    shown = b""
    try:
        while part := os.read(descriptor, 65536):
            shown += part
    except OSError:
        pass  # How Linux says that the other side is closed.
    return shown.decode(errors="replace")


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_leaves_no_process_and_no_file(temporary: Path, number: signal.Signals, exit_code: int) -> None:
    process = start("--messages", "100")
    read_until(process, "is paused")
    process.send_signal(number)
    _, errors = process.communicate(timeout=GUARD_S)
    assert (process.returncode, errors) == (exit_code, "Stopped: its processes have ended and its files are gone.\n")
    assert list(temporary.iterdir()) == []


def test_the_dashboard_of_a_demo_shows_its_data_until_it_is_interrupted(temporary: Path) -> None:
    process = start("--dashboard", "--json", *SMALL)
    assert process.stderr is not None
    address = re.search(r"http://\S+/", process.stderr.readline())
    assert address is not None
    assert b"Holdfast" in urllib3.request("GET", address[0], timeout=GUARD_S).data
    asked = {"queue": "messages", "state": "done"}
    kept = json.loads(urllib3.request("POST", f"{address[0]}v1/browse", json=asked, timeout=GUARD_S).data)["messages"]
    assert len(kept) == 8
    assert [ending[4] for message in kept for ending in message.get("history", [])].count("expired") >= 2
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=GUARD_S)
    assert process.returncode == 130
    assert list(temporary.iterdir()) == []


def test_a_killed_demo_leaves_no_process(temporary: Path) -> None:
    process = start("--messages", "100")
    read_until(process, "is killed")
    process.kill()
    _, errors = process.communicate(timeout=GUARD_S)
    assert (process.returncode, errors) == (-signal.SIGKILL, "")


def test_a_process_that_fails_ends_the_demo(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ProcessFailed, match=r"worker \d ended unexpectedly, with exit code 1"):
        run_demo(JsonOutput(), messages=8, workers=3, seed=1)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("messages", [4, 5, 7, 120, 500])
def test_every_script_has_each_trouble_once(messages: int) -> None:
    work_by_id = plan_work(messages, 4, random.Random(7))
    assert len(work_by_id) == messages
    assert Counter(work.trouble for work in work_by_id.values()) == {None: messages - 3, "kill": 1, "pause": 1, "long": 1}


def test_the_seed_alone_decides_the_script() -> None:
    assert plan_work(120, 4, random.Random(1)) == plan_work(120, 4, random.Random(1))
    assert plan_work(120, 4, random.Random(1)) != plan_work(120, 4, random.Random(2))


@pytest.mark.parametrize("arguments", [["--messages", "3"], ["--messages", "501"], ["--workers", "2"], ["--workers", "17"]])
def test_sizes_out_of_range_are_refused(arguments: list[str]) -> None:
    assert subprocess.run([*HOLDFAST, *arguments], capture_output=True, check=False, timeout=GUARD_S).returncode == 2
