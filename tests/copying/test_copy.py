"""`holdfast.copy`: by URL, across processes, interrupted at any moment."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Dict, Queue, Refused, StoreMoved, aio, connect, copy
from holdfast.results import CopyProgress
from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED

pytestmark = pytest.mark.anyio


def fill(url: str, count: int = 10) -> None:
    store = connect(url)
    store.close()
    jobs, shared = Queue.create("jobs", base_url=url), Dict.create("shared", base_url=url)
    jobs.put_many(range(count))
    shared.update({f"k{number}": number for number in range(count)})


def close_all() -> None:
    from holdfast.client import _clients

    for client in _clients.values():
        client.close()


def test_a_file_is_moved_to_another(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old.db", f"lmdb:///{tmp_path}/new"
    fill(source)
    told: list[CopyProgress] = []
    result = copy(source, target, progress=told.append)
    assert (result.queues, result.dicts, result.messages, result.entries, result.resumed) == (1, 1, 10, 10, False)
    assert [(one.done, one.total, one.what) for one in told] == [(10, 20, "jobs"), (20, 20, "shared")]
    assert len(result.checksum) == 32
    assert Queue.from_name("jobs", base_url=target).get_many(20) == list(range(10))
    assert Dict.from_name("shared", base_url=target).get("k3") == 3
    close_all()


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_opening_the_source_names_the_new_url(tmp_path: Path, scheme: str) -> None:
    source, target = f"{scheme}:///{tmp_path}/old", f"sqlite:///{tmp_path}/new.db"
    fill(source)
    close_all()
    copy(source, target)
    with pytest.raises(StoreMoved, match=r"was copied to sqlite:///.*new\.db") as caught:
        connect(source)
    opened = connect(caught.value.url)
    assert Queue.list(base_url=caught.value.url)[0].name == "jobs"
    opened.close()
    with pytest.raises(StoreMoved):
        copy(source, target)
    close_all()


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_a_process_that_has_the_source_open_is_told_too(tmp_path: Path, scheme: str) -> None:
    source, target = f"{scheme}:///{tmp_path}/old", f"sqlite:///{tmp_path}/new.db"
    with Program(OPENED.replace("sqlite:///{path}", source), tmp_path) as other:
        assert other.ask("put('a')") == "[True]"
        copy(source, target)
        for question in ("put('b')", "claim()", "waiting()"):
            assert other.ask(question).startswith("StoreMoved: ")


def test_a_source_that_another_process_writes_to_is_not_sealed(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old", f"sqlite:///{tmp_path}/new.db"
    with Program(OPENED.replace("sqlite:///{path}", source), tmp_path) as other:
        other.ask("put('a')")
        with pytest.raises(Refused, match="written to"):
            copy(source, target, progress=lambda _: other.ask("put('b')"))
        assert other.ask("waiting()") == "['a', 'b']"


COPYING = """
import sys
from holdfast import copy

seen = []

def stop_here(progress):
    seen.append(progress)
    if len(seen) == {pages}:
        print("here", flush=True)
        sys.stdin.read()

copy({source!r}, {target!r}, progress=stop_here)
"""


@pytest.mark.parametrize("pages", [1, 3])
def test_a_copy_that_was_killed_goes_on(tmp_path: Path, pages: int) -> None:
    source, target = f"sqlite:///{tmp_path}/old.db", f"lmdb:///{tmp_path}/new"
    fill(source, 1_200)
    close_all()
    program = COPYING.format(pages=pages, source=source, target=target)
    killed = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "here\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    told: list[CopyProgress] = []
    result = copy(source, target, progress=told.append)
    assert result.resumed
    assert told[0].done > pages * 400, "it must not begin again"
    assert (result.messages, result.entries) == (1_200, 1_200)
    assert Queue.from_name("jobs", base_url=target).get_many(2_000) == list(range(1_200))
    close_all()


def test_a_copy_that_was_killed_after_the_seal_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    fill(source)
    close_all()

    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("holdfast._sync.flows.copying.EndImport", interrupted)
        with pytest.raises(KeyboardInterrupt):
            copy(source, target)
    result = copy(source, target)
    assert (result.resumed, result.messages, result.entries, result.queues) == (True, 10, 10, 1)
    with pytest.raises(StoreMoved):
        copy(source, target)


async def test_tasks_copy_too(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    fill(source)
    close_all()
    result = await aio.copy(source, target)
    assert (result.messages, result.entries) == (10, 10)


def test_a_named_store_in_memory_is_moved_to_a_file(tmp_path: Path) -> None:
    fill("memory://prototype")
    result = copy("memory://prototype", f"sqlite:///{tmp_path}/new.db")
    assert (result.source, result.messages) == ("memory://prototype", 10)
    with pytest.raises(StoreMoved):
        connect("memory://prototype")


def test_a_file_is_moved_into_memory(tmp_path: Path) -> None:
    fill(f"sqlite:///{tmp_path}/old.db")
    close_all()
    copy(f"sqlite:///{tmp_path}/old.db", "memory://loaded")
    assert Queue.from_name("jobs", base_url="memory://loaded").length() == 10


def test_one_store_is_not_copied_to_itself(tmp_path: Path) -> None:
    fill(f"sqlite:///{tmp_path}/a.db")
    close_all()
    with pytest.raises(ValueError, match="source and target"):
        copy(f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/a.db")


def test_values_by_reference_are_refused() -> None:
    connect("memory://objects?values=reference")
    with pytest.raises(Exception, match="by reference"):
        copy("memory://objects?values=reference", "memory://elsewhere")
