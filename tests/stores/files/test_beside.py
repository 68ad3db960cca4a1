"""What somebody else puts beside a database: nothing is followed, changed or deleted through it."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.connect import connect
from holdfast.errors import StoreError
from holdfast.stores.files import beside
from holdfast.stores.files.turns import Turns
from holdfast.stores.files.wakeups import Wakeups
from holdfast.testing.conformance.asking import put

NAME = "1-0123456789ab"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    database = tmp_path / "store.db"
    database.touch(mode=0o600)
    return database


@pytest.fixture
def wakeups(database: Path) -> Iterator[Wakeups]:
    with closing(Wakeups(database, lambda *_: None)) as wakeups:
        yield wakeups


def folder_of(database: Path) -> Path:
    return Path(f"{database}-wake")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def leave_socket(path: Path) -> None:
    """As a process does that is gone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as gone:
        gone.bind(str(path))


def test_a_link_in_place_of_the_folder_is_not_followed_and_nothing_behind_it_is_deleted(
    database: Path, wakeups: Wakeups, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "shadow").write_text("keep me")
    leave_socket(precious / NAME)
    folder_of(database).symlink_to(precious)
    with caplog.at_level(logging.WARNING):
        wakeups.post([("queue:jobs", 1)])
        wakeups.listen()
    wakeups.close()
    assert names_in(precious) == [NAME, "shadow"]
    assert "waits poll instead" in caplog.text


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_a_commit_deletes_no_file_of_a_folder_that_a_link_leads_to(tmp_path: Path, scheme: str) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    for number in range(5):
        (precious / f"file-{number}").write_text("keep me")
    with closing(connect(f"{scheme}:///{tmp_path}/store")) as store:
        data = tmp_path / "store" if scheme == "sqlite" else tmp_path / "store/data.mdb"
        folder_of(data).symlink_to(precious)
        put(store, "a")
    assert len(names_in(precious)) == 5


def test_only_sockets_of_our_own_names_are_removed(database: Path, wakeups: Wakeups) -> None:
    folder = folder_of(database)
    folder.mkdir()
    (folder / NAME).write_text("a file under a name of ours")
    (folder / "2-0123456789ab").symlink_to(database)
    leave_socket(folder / "theirs")
    leave_socket(folder / "3-0123456789ab")
    wakeups.post([("queue:jobs", 1)])
    assert names_in(folder) == [NAME, "2-0123456789ab", "theirs"]


def test_a_folder_of_somebody_else_is_not_used(database: Path, wakeups: Wakeups, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(database)
    folder.mkdir()
    leave_socket(folder / NAME)
    somebody = os.stat_result((0o40755, 0, 0, 1, os.geteuid() + 1, 0, 0, 0, 0, 0))
    with monkeypatch.context() as context:
        context.setattr(os, "fstat", lambda _: somebody)
        wakeups.post([("queue:jobs", 1)])
    assert names_in(folder) == [NAME]
    wakeups.post([("queue:jobs", 1)])
    assert not folder.exists(), "control: from our own it is cleared away"


def test_a_link_that_takes_the_place_of_a_new_socket_changes_nothing_behind_it(
    database: Path, wakeups: Wakeups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.touch(mode=0o400)

    class Swapped(socket.socket):
        """Somebody exchanges the socket as soon as it is there."""

        def bind(self, address: Any) -> None:
            super().bind(address)
            Path(address).unlink()
            Path(address).symlink_to(victim)

        def connect(self, address: Any) -> None:
            """Nobody would answer."""

    database.chmod(0o666)
    monkeypatch.setattr(socket, "socket", Swapped)
    wakeups.listen()
    assert victim.stat().st_mode & 0o777 == 0o400


def test_a_link_in_place_of_the_turns_is_refused(database: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch(mode=0o400)
    Path(f"{database}-turns").symlink_to(victim)
    with pytest.raises(StoreError, match="-turns cannot be used"):
        Turns.shared(database)
    assert victim.stat().st_mode & 0o777 == 0o400


def test_a_link_that_takes_the_place_of_a_new_file_changes_nothing_behind_it(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, path = tmp_path / "victim", tmp_path / "store.db-turns"
    victim.touch(mode=0o400)
    database.chmod(0o666)
    status_of = beside.status_of

    def swapping(of: Any) -> Any:
        """Somebody exchanges the file between its making and its sharing."""
        path.unlink()
        path.symlink_to(victim)
        return status_of(of)

    monkeypatch.setattr(beside, "status_of", swapping)
    os.close(beside.open_companion(path, database))
    assert victim.stat().st_mode & 0o777 == 0o400


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_a_new_store_is_its_owners_alone(tmp_path: Path, scheme: str) -> None:
    before = os.umask(0o022)
    try:
        connect(f"{scheme}:///{tmp_path}/store").close()
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        ("sqlite", ""),
        ("sqlite", "-wal"),
        ("sqlite", "-shm"),
        ("sqlite", "-journal"),
        ("lmdb", ""),
        ("lmdb", "/data.mdb"),
        ("lmdb", "/lock.mdb"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_a_link_of_another_user_to_what_is_not_theirs_is_refused(
    tmp_path: Path, scheme: str, name: str, *, create: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = Path(f"{tmp_path}/store{name}")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to("/etc/passwd")
    if os.geteuid() == 0:
        os.chown(link, 65534, 65534, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65533)
    with pytest.raises(StoreError, match="a link that another user made"):
        connect(f"{scheme}:///{tmp_path}/store", create=create)


@pytest.mark.parametrize("scheme", ["sqlite", "lmdb"])
def test_a_link_of_our_own_leads_to_the_store(tmp_path: Path, scheme: str) -> None:
    connect(f"{scheme}:///{tmp_path}/store").close()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    connect(f"{scheme}:///{tmp_path}/link", create=False).close()


@pytest.mark.parametrize(("scheme", "name"), [("sqlite", ""), ("sqlite", "-wal"), ("lmdb", "/lock.mdb")])
def test_what_is_no_file_is_refused_in_place_of_one(tmp_path: Path, scheme: str, name: str) -> None:
    path = Path(f"{tmp_path}/store{name}")
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(StoreError, match="neither a file nor a folder"):
        connect(f"{scheme}:///{tmp_path}/store")
