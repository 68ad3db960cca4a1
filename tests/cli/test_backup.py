"""`holdfast backup`, `restore --from`, `check`, `export` and `import`."""

import multiprocessing
import os
import tracemalloc
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from holdfast._sync.flows import copying
from holdfast._sync.flows.importing import import_pages
from holdfast.cli.export_file import Header, check_export, pages_in, write_export
from holdfast.codec import JSON
from holdfast.commands import BeginImport, Item, Put, Survey
from holdfast.connect import connect
from holdfast.errors import Refused, StoreCorrupted
from holdfast.stores import Store
from holdfast.testing.conformance.asking import claim_one, grant, put, read, write
from holdfast.views.copy_pages import Page, Place
from tests.cli.running import holdfast
from tests.servers import own_redis_url


@pytest.fixture(params=["sqlite", "lmdb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}:///{tmp_path}/jobs"


def done(*arguments: str) -> Any:
    ran = holdfast(*arguments, "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    return json.decode(ran.stdout)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    with closing(connect(url)) as store:
        yield store


def work(url: str, name: str) -> int:
    """Write something under a lease of its own; return its token."""
    with opened(url) as store:
        put(store, name)
        token = grant(store, name, lease_id=name).token
        assert write(store, name, name, fence=token).written
    return token


def test_a_backup_is_made_while_the_store_is_open_and_no_token_of_after_it_passes_once_it_is_restored(url: str, tmp_path: Path) -> None:
    before = work(url, "before")
    if url.startswith("sqlite"):
        with opened(url) as store:
            claim_one(store)
            done("backup", f"{tmp_path}/backup", f"--url={url}")
    else:
        done("backup", f"{tmp_path}/backup", f"--url={url}")
    lost = work(url, "after")
    restored = done("restore", url, f"--from={tmp_path}/backup")
    assert restored["after"] > lost
    assert Path(restored["kept"]).is_file()
    with opened(url) as store:
        assert set(read(store)) == {"before"}
        for key in ("after", "before", "another"):
            with pytest.raises(Refused, match="acquire the lease or claim the message again"):
                write(store, key, "stale", fence=lost)
        assert write(store, "before", "again", fence=before).written, "what the backup knows of is judged as ever"
        assert grant(store, "after", lease_id="new").token > lost


def test_control_without_the_raise_a_stale_holder_would_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/jobs"
    work(url, "before")
    done("backup", f"{tmp_path}/backup", f"--url={url}")
    lost = work(url, "after")
    done("restore", url, f"--from={tmp_path}/backup")
    monkeypatch.setattr("holdfast.stores.sqlite.transaction.SqliteTransaction.was_skipped", lambda *_: False)
    with opened(url) as store:
        assert write(store, "after", "stale", fence=lost).written, "control: the raised counter alone lets it in"


def test_numbers_are_raised_above_those_of_the_file_that_is_replaced_even_if_the_clock_was_set_back(url: str, tmp_path: Path) -> None:
    work(url, "before")
    done("backup", f"{tmp_path}/backup", f"--url={url}")
    with opened(url) as store:
        copying.raise_numbers(store, 2**52 - 5)
    lost = work(url, "after")
    assert done("restore", url, f"--from={tmp_path}/backup")["after"] >= lost


def hold(url: str, is_open: Any, end: Any) -> None:
    with opened(url) as store:
        put(store, "x")
        is_open.set()
        end.wait(60)


def test_a_store_that_another_process_has_open_is_not_replaced(url: str, tmp_path: Path) -> None:
    work(url, "before")
    done("backup", f"{tmp_path}/backup", f"--url={url}")
    spawned = multiprocessing.get_context("spawn")
    is_open, end = spawned.Event(), spawned.Event()
    process = spawned.Process(target=hold, args=(url, is_open, end))
    process.start()
    assert is_open.wait(60)
    ran = holdfast("restore", url, f"--from={tmp_path}/backup")
    end.set()
    process.join()
    assert (ran.exit_code, "is in use: end every program" in ran.stderr) == (1, True)
    assert done("check", f"--url={url}")["messages"] == 2, "it is as it was"


@pytest.mark.parametrize("content", [b"", b"not a store" * 1000])
def test_what_is_no_backup_is_refused_and_nothing_changes(url: str, tmp_path: Path, content: bytes) -> None:
    work(url, "before")
    (tmp_path / "broken").write_bytes(content)
    for name in ("broken", "absent"):
        ran = holdfast("restore", url, f"--from={tmp_path}/{name}")
        assert (ran.exit_code, ran.stdout) == (1, "")
    assert done("check", f"--url={url}")["problems"] == []


def test_a_backup_overwrites_nothing_and_servers_are_sent_to_their_own_tools(url: str, tmp_path: Path) -> None:
    work(url, "before")
    done("backup", f"{tmp_path}/backup", f"--url={url}")
    again = holdfast("backup", f"{tmp_path}/backup", f"--url={url}")
    assert (again.exit_code, "is there already" in again.stderr) == (1, True)
    redis = holdfast("backup", f"{tmp_path}/other", f"--url={own_redis_url()}")
    assert (redis.exit_code, "holdfast export" in redis.stderr) == (2, True)


def test_an_export_is_imported_into_another_kind_of_store_with_everything_in_it(url: str, tmp_path: Path) -> None:
    work(url, "before")
    with opened(url) as store:
        claim_one(store)
        put(store, *map(str, range(1_200)))
    exported = done("export", f"{tmp_path}/all.ndjson", f"--url={url}")
    assert (exported["messages"], exported["entries"]) == (1_201, 1)
    other = f"sqlite:///{tmp_path}/other.db"
    assert done("import", f"{tmp_path}/all.ndjson", f"--url={other}")["messages"] == 1_201
    checked = done("check", f"--url={other}")
    assert (checked["messages"], checked["entries"], checked["problems"]) == (1_201, 1, [])
    again = holdfast("import", f"{tmp_path}/all.ndjson", f"--url={other}")
    assert (again.exit_code, "not empty" in again.stderr) == (1, True)


def test_an_export_that_was_cut_off_or_changed_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs"
    work(url, "before")
    text = holdfast("export", f"--url={url}").stdout
    for number, broken in enumerate(("", text[:-40], "".join(text.splitlines(keepends=True)[:-1]), text.replace("before", "behind"))):
        (tmp_path / f"{number}.ndjson").write_text(broken)
        ran = holdfast("import", f"{tmp_path}/{number}.ndjson", f"--url=sqlite:///{tmp_path}/other.db")
        assert (ran.exit_code, "nothing was imported" in ran.stderr) == (1, True)


def test_a_broken_line_is_named_and_nothing_is_imported(tmp_path: Path) -> None:
    url, other = f"sqlite:///{tmp_path}/jobs", tmp_path / "other.db"
    work(url, "before")
    lines = holdfast("export", f"--url={url}").stdout.splitlines()
    for number in range(2, len(lines) + 1):
        for broken in ("{", "\\", "[]", lines[number - 1][:-5]):
            (tmp_path / "broken.ndjson").write_text("\n".join([*lines[: number - 1], broken, *lines[number:]]))
            ran = holdfast("import", f"{tmp_path}/broken.ndjson", f"--url=sqlite:///{other}")
            assert (ran.exit_code, f"line {number} cannot be read" in ran.stderr) == (1, True), ran.stderr
    assert not other.exists()


def test_an_export_is_imported_from_a_pipe(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs"
    work(url, "before")
    text = holdfast("export", f"--url={url}").stdout
    read_from, write_to = os.pipe()
    os.write(write_to, text.encode())
    os.close(write_to)
    assert done("import", f"/dev/fd/{read_from}", f"--url=sqlite:///{tmp_path}/other.db")["messages"] == 1
    os.close(read_from)


@pytest.fixture(scope="module")
def large_export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six megabytes in 300 pages."""
    path = tmp_path_factory.mktemp("large") / "all.ndjson"
    with closing(connect("memory://")) as store, path.open("w") as file:
        store.execute(Put("mail", [Item("1", JSON.encode("x" * 20_000))]))
        contents = copying.contents_of(store)
        pages = list(copying.pages_of(store, contents))[-1:] * 300
        write_export(file, Header(1, "memory://", store.execute(Survey())), pages)
    return path


@pytest.mark.parametrize(("read", "is_small"), [(deque, True), (list, False)], ids=["page by page", "control: all at once"])
def test_an_export_is_read_page_by_page(large_export: Path, read: Any, is_small: bool) -> None:  # noqa: FBT001 - a parameter of the test
    with large_export.open("rb") as file:
        tracemalloc.start()
        try:
            check_export(file, "x")
            file.seek(0)
            pages = read(pages_in(file, "x"), *([0] if is_small else []))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (peak < 1_000_000, len(pages)) == (is_small, 0 if is_small else 300)


def test_each_page_is_asked_for_when_the_one_before_it_is_imported(tmp_path: Path, large_export: Path) -> None:
    told: list[str] = []

    def pages() -> Iterator[Page]:
        for number in range(2):
            told.append(f"asked {number}")
            yield Page(Place("settings", after=(number,)))

    with opened(f"sqlite:///{tmp_path}/new.db") as store, large_export.open("rb") as file:
        survey = check_export(file, "x")[0].survey
        import_pages(store, "test", survey, pages(), progress=lambda done: told.append(f"imported {done}"))
    assert told == ["asked 0", "imported 1", "asked 1", "imported 2"]


def test_a_source_that_ends_before_an_earlier_import_of_it_did_is_refused(tmp_path: Path, large_export: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/new.db") as store, large_export.open("rb") as file:
        survey = check_export(file, "x")[0].survey
        copying_ = store.execute(BeginImport("test", survey))
        copying.copy_page(store, copying_, Page(Place("settings", after=(7,))))
        with pytest.raises(StoreCorrupted, match="came further than this one has pages"):
            import_pages(store, "test", survey, [Page(Place("settings", after=(1,)))])


def test_a_store_that_counts_wrongly_or_is_damaged_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/jobs"
    work(url, "before")
    monkeypatch.setattr("holdfast.cli.check.Read.messages", property(lambda _: 0))
    monkeypatch.setattr("holdfast.cli.check.Read._look", lambda self, *_: self.problems.append("unreadable"))
    ran = holdfast("check", f"--url={url}")
    assert (ran.exit_code, "unreadable" in ran.stdout) == (1, True)
    monkeypatch.undo()
    file = tmp_path / "jobs"
    file.write_bytes(file.read_bytes()[:4096] + b"\xff" * 4096 + file.read_bytes()[8192:])
    assert holdfast("check", f"--url={url}").exit_code == 1
