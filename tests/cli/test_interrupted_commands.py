"""Ctrl-C ends every command that runs for long, and leaves no claim and no lease behind; what `--json` prints can be read up to there."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Queue
from holdfast._sync.flows.listing import held_leases
from holdfast.cli.queue.put_and_claim import claim as claim_command
from holdfast.cli.queue_counts import queue_counts
from tests.interrupts import interrupt_at
from tests.sentinel_databases import until

COMMAND = [sys.executable, "-c", "from holdfast.cli import main; main()"]
LOGS = ("queue exec", "schedule run", "worker", "serve")
"""Commands whose output is a log, on standard error."""
APP = """
import os, threading
from holdfast import worker

@worker("mail")
def send(value):
    open(os.environ["BEGUN"], "w").close()
    threading.Event().wait(600)
"""
PROGRAM = "-- sh -c 'touch $BEGUN; exec sleep 600'"

WAITING = {
    "queue put": "mail",
    "queue claim": "empty --timeout-s=600",
    "queue watch": "mail",
    "dict watch": "settings",
    "watch": "",
    "top": "",
    "lock run": "taken -- true",
    "leader run": "taken -- true",
    "schedule run": "",
    "serve": "--port=0",
    "mcp": "",
    "localqueue queue pop": "empty --block",
}
"""Commands that wait for something that does not come."""
WORKING = {
    "queue exec": f"mail {PROGRAM}",
    "lock run": f"free {PROGRAM}",
    "leader run": f"free {PROGRAM}",
    "worker": "interrupted_app",
}
"""Commands that hold something while a program or a function runs."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with a message, a lock and an election that another process holds."""
    (tmp_path / "interrupted_app.py").write_text(APP)
    found = f"sqlite:///{tmp_path}/s.db"
    with ControlPlaneClient(found) as client:
        Queue.create("mail", client=client).put(1)
    return found


@contextmanager
def started(url: str, path: str, arguments: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    environment = {**os.environ, "BEGUN": str(folder / "begun"), "HOLDFAST_URL": url}
    words = subprocess.list2cmdline(COMMAND[:1]).split()
    line = f"exec {' '.join(words)} -c '{COMMAND[2]}' {path} --json {arguments}"
    with subprocess.Popen(
        ["/bin/bash", "-c", line],
        env=environment,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def has_open(pid: int, file: Path) -> bool:
    """Whether the process has opened the file."""
    with suppress(OSError):
        return any(os.path.realpath(entry) == str(file) for entry in Path(f"/proc/{pid}/fd").iterdir())
    return False


def left(url: str) -> tuple[int, list[str]]:
    """How many claims there are, and the names of the leases."""
    with ControlPlaneClient(url) as client:
        claims = sum(queue.stats.leased for queue in queue_counts(client.store))
        return claims, [str(lease.name) for lease in held_leases(client.store, None, "", 100)]


def read(path: str, output: str, log: str) -> None:
    assert "Traceback" not in log
    for row in [*output.splitlines(), *(log.splitlines() if path in LOGS else ())]:
        if not row.startswith("holdfast "):  # The sentence that says why it ended.
            json.decode(row)


STRUCK = """
import os, signal, sys
class Strikes:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Strikes())
sys.argv = ["holdfast", "queue", "ls"]
from holdfast.cli import main
main()
"""


@pytest.mark.parametrize("module", ["holdfast.cli.app", "holdfast.cli.queue"])
def test_an_interrupt_while_it_begins_shows_no_traceback(module: str) -> None:
    ran = subprocess.run([sys.executable, "-c", STRUCK.format(module=module)], capture_output=True, text=True, check=False)
    assert (ran.returncode in (-signal.SIGINT, 130), "Traceback" in ran.stderr) == (True, False), ran.stderr


@pytest.mark.parametrize("path", WAITING)
def test_an_interrupted_wait_leaves_nothing_held(path: str, url: str, tmp_path: Path) -> None:
    with ControlPlaneClient(url) as client:
        from holdfast import Election, Lock

        lock, election = Lock("taken", lease_s=600, client=client), Election("taken", lease_s=600, client=client)
        lock.acquire()
        election.campaign()
        before = left(url)
        with started(url, path, WAITING[path], tmp_path) as process:
            until(lambda: has_open(process.pid, tmp_path / "s.db") or process.poll() is not None)
            process.send_signal(signal.SIGINT)
            output, log = process.communicate(timeout=60)
        assert process.returncode in (130, 0 if path in (*LOGS, "mcp") else 130), log
        read(path, output, log)
        assert left(url) == before


@pytest.mark.parametrize("path", WORKING)
def test_interrupted_work_is_given_back(path: str, url: str, tmp_path: Path) -> None:
    with started(url, path, WORKING[path], tmp_path) as process:
        until(lambda: (tmp_path / "begun").exists() or process.poll() is not None)
        assert left(url) != (0, []), "it holds what it works on"
        process.send_signal(signal.SIGINT)
        if path in LOGS:  # The first lets what runs finish, the second does not.
            assert process.stderr is not None
            while "may finish within" not in process.stderr.readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
        output, log = process.communicate(timeout=60)
    read(path, output, log)
    assert left(url) == (0, [])


@pytest.mark.parametrize("path", ["lock run", "worker"])
def test_a_command_that_is_killed_does_leave_something(path: str, url: str, tmp_path: Path) -> None:
    """The control: what the tests above look for is there to be found."""
    with started(url, path, WORKING[path], tmp_path) as process:
        until(lambda: (tmp_path / "begun").exists() or process.poll() is not None)
        process.kill()
        process.wait(60)
        assert left(url) != (0, [])


def test_a_claim_is_either_printed_or_given_back_wherever_the_interrupt_strikes(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        claim_command("mail", url=url)

    call()
    printed, struck = capsys.readouterr().out.count("\n"), 0
    for n in range(1, 10_000, 97):
        with ControlPlaneClient(url) as client:
            Queue[int].from_name("mail", client=client).put(n)
        where = interrupt_at(n, call)
        printed += capsys.readouterr().out.count("\n")
        assert left(url)[0] <= printed, where
        struck += where is not None
        if where is None:
            break
    assert struck > 5
