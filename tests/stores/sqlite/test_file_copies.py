"""A copy of the file alone, without the log beside it, has everything."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.stores.sqlite import checkpoints
from holdfast.stores.sqlite.store import SqliteStore
from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED, put, waiting, waiting_in

LEAVES_IT_OPEN = """
import sys
from holdfast import Queue
queue = Queue.create("jobs", base_url=f"sqlite:///{sys.argv[1]}")
queue.put_many(range(3))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


def copied(path: Path) -> list[str]:
    """What is in a copy of the file alone."""
    with closing(SqliteStore(shutil.copy(path, path.with_name("copy.db")))) as copy:
        return waiting(copy)


def wait_for_copy(path: Path, expected: list[str]) -> list[str]:
    deadline = time.monotonic() + 30
    while (found := copied(path)) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def test_a_copy_of_a_closed_store_is_complete_though_others_have_it_open(path: Path) -> None:
    with closing(SqliteStore(path)):
        with closing(SqliteStore(path)) as store:
            put(store, "a", "b")
        assert copied(path) == ["a", "b"]


def test_a_program_that_just_ends_leaves_a_file_that_can_be_copied(path: Path) -> None:
    subprocess.run([sys.executable, "-c", LEAVES_IT_OPEN, path], check=True)
    assert len(copied(path)) == 3


def test_a_copy_of_an_idle_store_is_complete(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "IDLE_S", 0.02)
    with closing(SqliteStore(path)) as store:
        put(store, "a", "b")
        assert wait_for_copy(path, ["a", "b"]) == ["a", "b"]
        put(store, "c")
        assert wait_for_copy(path, ["a", "b", "c"]) == ["a", "b", "c"]


def test_whoever_opens_the_file_of_a_killed_program_brings_its_log_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "IDLE_S", 0.02)
    with Program(OPENED, path) as other:
        other.ask("put('a')")
        other.kill()
    assert copied(path) == []
    with closing(SqliteStore(path)):
        assert wait_for_copy(path, ["a"]) == ["a"]


def test_no_thread_is_left_once_everything_is_in_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "IDLE_S", 0.02)
    with closing(SqliteStore(path)) as store:
        put(store, "a")
        deadline = time.monotonic() + 30
        while any(named_checkpoints()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not any(named_checkpoints())
    assert waiting_in(path) == ["a"]


def named_checkpoints() -> Iterator[str]:
    return (thread.name for thread in threading.enumerate() if thread.name == "holdfast checkpoints")
