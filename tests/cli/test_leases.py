"""`holdfast lock` and `holdfast leader`: a program runs only while its lease is trusted, whatever becomes of the command that holds it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Dict, Lock
from holdfast.stores.sqlite.store import SqliteStore
from tests.cli.running import holdfast
from tests.sentinel_databases import until

COMMAND = [sys.executable, "-c", "from holdfast.cli import main; main()"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    SqliteStore(tmp_path / "s.db").close()
    return f"sqlite:///{tmp_path}/s.db"


@contextmanager
def running(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def pid_of(printed: Path) -> int:
    until(lambda: printed.exists() and printed.read_text().endswith("\n"))
    return int(printed.read_text())


def test_a_program_runs_under_a_lock_with_its_token_and_its_exit_code_is_passed_on(url: str) -> None:
    script = 'echo "$HOLDFAST_LEASE $HOLDFAST_HOLDER $HOLDFAST_FENCE"; cat; exit 7'
    arguments = [*COMMAND, "lock", "run", "report", "--holder=me", f"--url={url}", "--", "sh", "-c", script]
    ran = subprocess.run(arguments, capture_output=True, text=True, input="from the input", check=False)
    assert ran.returncode == 7, ran.stderr
    name, holder, token = ran.stdout.splitlines()[0].split()
    assert (name, holder, int(token) > 0, "from the input" in ran.stdout) == ("report", "me", True, True)
    assert holdfast("lock", "show", "report", f"--url={url}").exit_code == 3


def test_a_lock_that_is_not_free_in_time_is_exit_code_three_and_nothing_runs(url: str, tmp_path: Path) -> None:
    with ControlPlaneClient(url) as client, Lock("report", holder="other", client=client):
        ran = holdfast("lock", "run", "report", "--wait-s=0", f"--url={url}", "--", "touch", str(tmp_path / "ran"))
        assert (ran.exit_code, (tmp_path / "ran").exists()) == (3, False)
        shown = json.decode(holdfast("lock", "show", "report", "--json", f"--url={url}").stdout)
        assert shown["holder"] == "other"


def test_a_prefix_is_looked_for_in_the_store_and_not_among_the_first_names(url: str) -> None:
    with ControlPlaneClient(url) as client:
        for name in ("a-1", "a-2", "b-1", "b-2"):
            Lock(name, lease_s=600, client=client).acquire()
        Dict[int].create("settings", client=client).acquire_lease("b-3", lease_s=600)

    def listed(*arguments: str) -> list[tuple[str, str]]:
        found = json.decode(holdfast("lock", "ls", *arguments, "--json", f"--url={url}").stdout)
        return [(one["name"], one["kind"]) for one in found]

    assert listed("b-", "--limit=2") == [("b-1", "lock"), ("b-2", "lock")]
    assert listed("b-", "--limit=1") == [("b-1", "lock")]
    assert listed("b-", "--kind=election") == []
    assert listed("--kind=lock", "--limit=3") == [("a-1", "lock"), ("a-2", "lock"), ("b-1", "lock")]
    assert [name for name, _ in listed("b-", "--dict=settings")] == ["b-3"]
    assert listed("c", "--dict=settings") == []


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/", 126)])
def test_a_program_that_cannot_be_started_is_an_exit_code_of_its_own(program: str, code: int, url: str) -> None:
    arguments = [*COMMAND, "lock", "run", "report", f"--url={url}", "--", program]
    assert subprocess.run(arguments, capture_output=True, check=False).returncode == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_program_ends_before_another_gets_the_lock_of_a_command_that_is_killed_or_stopped(
    url: str, tmp_path: Path, number: signal.Signals
) -> None:
    script = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    with running("lock", "run", "report", "--lease-s=2", f"--url={url}", "--", "sh", "-c", script) as process:
        pid = pid_of(tmp_path / "pid")
        process.send_signal(number)
        with ControlPlaneClient(url) as client, Lock("report", client=client):
            assert not is_alive(pid)


def test_a_break_of_the_lock_is_exit_code_four_and_json_says_that_it_was_lost(url: str, tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; echo printed; exec sleep 600"
    with running("lock", "run", "report", "--lease-s=1", "--json", f"--url={url}", "--", "sh", "-c", script) as process:
        pid = pid_of(tmp_path / "pid")
        assert holdfast("lock", "break", "report", "--reason=test", "--yes", f"--url={url}").exit_code == 0
        output, log = process.communicate(timeout=60)
    told = json.decode(output)
    assert (process.returncode, told["name"], told["exit_code"], told["lost"]) == (4, "report", None, True)
    assert ("printed" in log, is_alive(pid)) == (True, False)


def test_a_program_dies_with_its_guardian(url: str, tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    with running("lock", "run", "report", f"--url={url}", "--", "sh", "-c", script) as process:
        pid = pid_of(tmp_path / "pid")
        guardian = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(guardian, signal.SIGKILL)
        assert process.wait(60) == 128 + signal.SIGKILL
        until(lambda: not is_alive(pid))
    assert holdfast("lock", "show", "report", f"--url={url}").exit_code == 3


def test_a_signal_is_passed_on_and_the_lock_is_given_back_at_once(url: str, tmp_path: Path) -> None:
    script = f"trap 'exit 9' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    with running("lock", "run", "report", f"--url={url}", "--", "sh", "-c", script) as process:
        pid_of(tmp_path / "pid")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 9
    assert holdfast("lock", "show", "report", f"--url={url}").exit_code == 3


def test_a_candidate_that_lost_its_leadership_kills_the_program_and_stands_again(url: str, tmp_path: Path) -> None:
    script = f"echo $HOLDFAST_FENCE >> {tmp_path}/tokens; while ! test -e {tmp_path}/end; do sleep 0.05; done"
    tokens = tmp_path / "tokens"
    with running("leader", "run", "cluster", "--lease-s=2", f"--url={url}", "--", "sh", "-c", script) as process:
        until(lambda: tokens.exists() and tokens.read_text().count("\n") == 1)
        process.send_signal(signal.SIGSTOP)
        with ControlPlaneClient(url) as client:
            from holdfast import Election

            with Election("cluster", holder="other", client=client) as leadership:
                assert leadership.token > int(tokens.read_text().split()[0])
                process.send_signal(signal.SIGCONT)
        until(lambda: tokens.read_text().count("\n") == 2)
        (tmp_path / "end").touch()
        assert process.wait(60) == 0
    first, second = map(int, tokens.read_text().split())
    assert first < second
