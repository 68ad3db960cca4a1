"""`holdfast copy`."""

import subprocess
import sys
from pathlib import Path

from msgspec import json

from holdfast import Queue, StoreMoved, connect


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
    assert done.stdout.startswith("Moved 3 messages of 1 queues and 0 entries of 0 dicts to sqlite:///")
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
    assert "Not moved: the target of the copy is not empty" in done.stderr
    try:
        connect(source).close()
    except StoreMoved as moved:
        raise AssertionError("the source was sealed") from moved


def test_an_unknown_url_is_refused_without_showing_it() -> None:
    done = holdfast("copy", "mysql://ann:s3cret@host/db", "memory://")
    assert done.returncode == 1
    assert "s3cret" not in done.stderr + done.stdout
