"""`holdfast copy`."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import json

from holdfast import Queue, StoreMoved, connect
from tests.cli.running import holdfast as in_process


def holdfast(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from holdfast.cli import main; main()", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def fill(url: str) -> None:
    jobs = Queue.create("jobs", base_url=url)
    jobs.put_many([1, 2, 3])


def test_it_moves_and_says_what(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    fill(source)
    done = holdfast("copy", source, target)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Moved 3 messages of 1 queue and 0 entries of 0 dicts to sqlite:///")
    assert Queue.from_name("jobs", base_url=target).length() == 3


def test_it_answers_scripts_in_json(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    fill(source)
    done = holdfast("copy", source, target, "--json")
    result = json.decode(done.stdout)
    assert (result["messages"], result["queues"], result["resumed"]) == (3, 1, False)
    again = holdfast("copy", source, target, "--json")
    assert again.returncode == 1
    assert "was copied to" in again.stderr


def test_what_refuses_is_said_and_the_source_stays(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    fill(source)
    fill(target)
    done = holdfast("copy", source, target)
    assert done.returncode == 1
    assert "holdfast copy: the target of the copy is not empty" in done.stderr
    try:
        connect(source).close()
    except StoreMoved as moved:
        raise AssertionError("the source was sealed") from moved


def test_an_unknown_url_is_refused_without_showing_it() -> None:
    done = holdfast("copy", "mysql://ann:s3cret@host/db", "sqlite:///never.db")
    assert done.returncode == 2
    assert "s3cret" not in done.stderr + done.stdout


def test_it_is_taken_back_and_says_so(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    fill(source)
    moved = holdfast("copy", source, target)
    assert "holdfast copy --undo 'sqlite:///" in moved.stdout
    undone = in_process("copy", "--undo", source)
    assert (undone.exit_code, "can be used again" in undone.stdout, "is sealed in turn" in undone.stdout) == (0, True, True)
    assert Queue.from_name("jobs", base_url=source).length() == 3
    again = in_process("copy", "--undo", source)
    assert (again.exit_code, "is not sealed" in again.stderr) == (1, True)


def test_a_target_that_was_used_is_taken_back_only_by_force(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    fill(source)
    in_process("copy", source, target)
    Queue.from_name("jobs", base_url=target).put(4)
    refused = in_process("copy", "--undo", source)
    assert (refused.exit_code, "was written to since the copy" in refused.stderr) == (1, True)
    forced = in_process("copy", "--undo", "--force", "--json", source)
    assert json.decode(forced.stdout)["target_sealed"] is False


@pytest.mark.parametrize("target", ["memory://", "memory://loaded"])
def test_a_target_that_ends_with_the_command_is_refused_and_the_source_stays(tmp_path: Path, target: str) -> None:
    source = f"sqlite:///{tmp_path}/old.db"
    fill(source)
    done = in_process("copy", source, target)
    assert (done.exit_code, "would be gone when this command ends" in done.stderr) == (2, True)
    connect(source).close()


def test_an_empty_store_is_not_moved(tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path}/old.db"
    connect(source).close()
    done = in_process("copy", source, f"sqlite:///{tmp_path}/new.db")
    assert (done.exit_code, "nothing was moved" in done.stderr) == (1, True)
    connect(source).close()


def test_a_target_is_asked_for(tmp_path: Path) -> None:
    assert in_process("copy", f"sqlite:///{tmp_path}/old.db").exit_code == 2
