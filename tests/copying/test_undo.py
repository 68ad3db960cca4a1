"""`holdfast.undo_copy`: on every store whose seal can be taken off."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Lock, Queue, Refused, StoreMissing, StoreMoved, aio, connect, copy, undo_copy
from holdfast.commands import Survey
from holdfast.connect import seal_of
from holdfast.testing import servers
from tests.copying.test_copy import close_all, fill
from tests.postgres import empty_postgres_url, own_postgres_url
from tests.servers import own_redis_url

KINDS: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda path: f"sqlite:///{path}/old.db",
    "lmdb": lambda path: f"lmdb:///{path}/old",
    "redis": lambda _: own_redis_url(),
    "postgres": lambda _: own_postgres_url(),
}


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return KINDS[request.param](tmp_path)


@pytest.fixture(params=KINDS)
def nowhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return empty_postgres_url(" nowhere") if request.param == "postgres" else KINDS[request.param](tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return KINDS["sqlite"](tmp_path)


@pytest.fixture
def target(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/new.db"


def jobs(url: str) -> Queue[Any]:
    return Queue.from_name("jobs", base_url=url)


def token_of_a_lock(url: str) -> int:
    with Lock("L", base_url=url) as lease:
        return lease.token


def test_the_source_goes_on_as_it_was_and_the_copy_is_sealed(source: str, target: str) -> None:
    fill(source)
    copy(source, target)
    close_all()
    undone = undo_copy(source)
    assert undone.target_sealed
    assert jobs(source).get_many(20) == list(range(10))
    jobs(source).put("more")
    close_all()
    with pytest.raises(StoreMoved) as moved:
        connect(target)
    assert moved.value.url == undone.source
    assert seal_of(source).read() is None


def test_whoever_has_the_source_open_goes_on_too(source: str, target: str) -> None:
    fill(source)
    queue = jobs(source)
    copy(source, target)
    with pytest.raises(StoreMoved, match="holdfast copy --undo"):
        queue.length()
    undo_copy(source)
    assert queue.length() == 10
    close_all()


def test_a_target_that_was_used_since_is_not_taken_back(file: str, target: str) -> None:
    fill(file)
    copy(file, target)
    close_all()
    jobs(target).put("new")
    with pytest.raises(Refused, match=r"stays sealed: sqlite.*new\.db.* was written to since the copy"):
        undo_copy(file)
    close_all()
    with pytest.raises(StoreMoved):
        connect(file)
    assert jobs(target).length() == 11
    close_all()


def test_forced_the_source_is_opened_and_its_tokens_go_on_above_those_of_the_target(source: str, target: str) -> None:
    fill(source)
    copy(source, target)
    close_all()
    tokens = [token_of_a_lock(target) for _ in range(20)]
    close_all()
    assert not undo_copy(source, force=True).target_sealed
    assert token_of_a_lock(source) > tokens[-1]
    assert jobs(source).length() == jobs(target).length() == 10
    close_all()


def test_a_source_whose_copy_is_gone_needs_force(file: str, target: str, tmp_path: Path) -> None:
    fill(file)
    copy(file, target)
    close_all()
    for path in tmp_path.glob("new.db*"):
        path.unlink(missing_ok=True) if path.is_file() else path.rmdir()
    with pytest.raises(Refused, match="there is no store"):
        undo_copy(file)
    undo_copy(file, force=True)
    assert jobs(file).length() == 10
    close_all()


def test_a_store_that_is_not_sealed_has_nothing_to_undo(source: str) -> None:
    fill(source)
    close_all()
    with pytest.raises(Refused, match="is not sealed"):
        undo_copy(source)


def test_where_there_is_no_store_none_is_made(nowhere: str, tmp_path: Path) -> None:
    for ask in (lambda: undo_copy(nowhere), lambda: connect(nowhere, create=False), lambda: copy(nowhere, f"sqlite:///{tmp_path}/new.db")):
        with pytest.raises(StoreMissing, match="there is no store"):
            ask()
    assert not list(tmp_path.iterdir())


def test_a_store_is_opened_where_it_exists(source: str) -> None:
    fill(source)
    close_all()
    connect(source, create=False).close()


def test_an_undoing_that_was_interrupted_is_finished(file: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(file)
    copy(file, target)
    close_all()
    seal = type(seal_of(file))

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(seal, "remove", interrupted)
        with pytest.raises(KeyboardInterrupt):
            undo_copy(file)
    undo_copy(file)
    assert jobs(file).length() == 10
    close_all()


def test_a_copy_that_was_merged_with_something_needs_force(tmp_path: Path, target: str) -> None:
    source = KINDS["sqlite"](tmp_path)
    fill(source)
    Queue.create("other", base_url=target).put(1)
    close_all()
    copy(source, target, merge=True)
    with pytest.raises(Refused, match="merged into"):
        undo_copy(source)
    undo_copy(source, force=True)
    assert Queue.from_name("other", base_url=target).length() == 1
    close_all()


def test_another_target_than_the_one_copied_to_is_refused(tmp_path: Path, target: str) -> None:
    source, other = KINDS["sqlite"](tmp_path), f"sqlite:///{tmp_path}/other.db"
    fill(source)
    fill(other)
    close_all()
    copy(source, target)
    with pytest.raises(ValueError, match=r"was copied to .*new\.db.*, not to .*other\.db"):
        undo_copy(source, other)


def test_an_empty_store_is_neither_moved_nor_sealed(source: str, target: str) -> None:
    connect(source).close()
    with pytest.raises(Refused, match="is empty; nothing was moved"):
        copy(source, target)
    connect(source).close()


def test_locks_alone_are_reason_enough_to_move(tmp_path: Path, target: str) -> None:
    source = KINDS["sqlite"](tmp_path)
    newest = token_of_a_lock(source)
    close_all()
    copy(source, target)
    assert token_of_a_lock(target) > newest
    close_all()


def test_a_copy_into_a_store_that_dies_with_the_call_is_refused(tmp_path: Path) -> None:
    source = KINDS["sqlite"](tmp_path)
    fill(source)
    close_all()
    with pytest.raises(ValueError, match="would be gone"):
        copy(source, "memory://")
    store = connect(source)
    assert store.execute(Survey()).latest
    store.close()


def test_the_seal_of_what_does_not_outlive_its_process_stays(tmp_path: Path) -> None:
    fill("memory://undone")
    copy("memory://undone", f"sqlite:///{tmp_path}/new.db")
    with pytest.raises(ValueError, match="cannot be removed"):
        undo_copy("memory://undone")
    close_all()


@pytest.mark.anyio
async def test_tasks_undo_too(tmp_path: Path, target: str) -> None:
    source = KINDS["sqlite"](tmp_path)
    fill(source)
    close_all()
    await aio.copy(source, target)
    assert (await aio.undo_copy(source)).target_sealed
    assert jobs(source).length() == 10
    close_all()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_copy_to_a_server_is_taken_back_through_it(kind: str, file: str, tmp_path: Path) -> None:
    behind = f"sqlite:///{tmp_path}/behind.db" if kind == "sqlite" else own_postgres_url()
    fill(file)
    close_all()
    with servers.holdfast(behind, allow_copy=True) as server:
        copy(file, server.url)
        assert undo_copy(file).target_sealed
        with pytest.raises(StoreMoved):
            jobs(server.url).length()
        close_all()
    assert jobs(file).length() == 10
    close_all()


def test_the_store_behind_a_server_is_opened_again_on_its_own_machine(file: str, tmp_path: Path, target: str) -> None:
    fill(file)
    close_all()
    with servers.holdfast(file, allow_copy=True) as server:
        copy(server.url, target)
        with pytest.raises(ValueError, match="on the store that the server serves"):
            undo_copy(server.url)
        assert undo_copy(file).target_sealed
        assert jobs(server.url).length() == 10
        close_all()
