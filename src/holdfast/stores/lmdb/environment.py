"""An LMDB environment, opened once per process because LMDB's locks belong to the process.

A forked child must neither use nor close what it inherited (closing would end the parent's readers), only let go of it. It can while no
transaction is open, so a fork waits until those of other threads have ended.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import lmdb

from holdfast.commands import refusal_errors
from holdfast.errors import SchemaTooNew, StoreCorrupted, StoreError, StoreMissing
from holdfast.stores.files import Durability
from holdfast.stores.files.beside import OURS_ALONE, refuse_what_others_placed, status_of
from holdfast.stores.lmdb.gate import Gate
from holdfast.stores.lmdb.layout import LONGEST
from holdfast.stores.lmdb.tables import TABLES, Handle, Tables

FORMAT = 1
"""What the tables look like; another number is another layout."""

MOVED, TARGET_AT = b"moved", b"target_at"
"""In `about`: where everything was copied to, and the newest event's number there when the copy was complete."""

FIRST_MAP_BYTES = 2**26
READERS = 1_024
FORK_S = 5.0
"""How long a fork waits for open transactions."""

NOWHERE = (-1, -1)

_open: "dict[tuple[int, int], Environment]" = {}


class Environment:
    """The environment in one folder. Code that uses `lmdb` is inside the gate; callers of its methods are outside and have the turn."""

    def __init__(self, folder: str, durability: Durability, map_size: int) -> None:
        self.folder = folder
        self.durability = durability
        self.gate: Gate = Gate()
        self.users: int = 0
        self.is_broken: bool = False
        """Whether a commit failed, so that it must be opened again."""
        self._open(min(map_size, FIRST_MAP_BYTES))
        self.identity: tuple[int, int] = identity(folder)

    def _open(self, map_bytes: int) -> None:
        self.lmdb: lmdb.Environment = lmdb.open(
            self.folder,
            map_size=map_bytes,
            max_dbs=len(TABLES),
            max_readers=READERS,
            mode=self._mode(),
            sync=self.durability == "power",
            metasync=self.durability == "power",
            # Readahead fills the memory with pages that random access does not want.
            readahead=False,
        )
        try:
            self.lmdb.reader_check()
            self.mapped_bytes: int = self.lmdb.info()["map_size"]
            self.page_bytes: int = self.lmdb.stat()["psize"]
            self.tables: Tables = self._open_tables()
        except BaseException:
            self.lmdb.close()
            raise

    @classmethod
    def opened(cls, folder: str) -> "Environment | None":
        """This process's environment of the folder, if it has it open."""
        return _open.get(identity(folder))

    def _mode(self) -> int:
        """What new files are open to: as the data is, and at first to their owner alone."""
        status = status_of(Path(self.folder, "data.mdb"))
        return OURS_ALONE if status is None else status.st_mode & 0o666

    @classmethod
    def share(cls, folder: str, durability: Durability, map_size: int) -> "Environment":
        """This process's environment of the folder, opened or created if need be."""
        found = cls.opened(folder)
        if found is None:
            found = cls(folder, durability, map_size)
            _open[found.identity] = found
        elif durability == "power" and found.durability != "power":
            message = f"{folder} is open in this process with durability 'process': close that store, or open it with 'power' too"
            raise StoreError(message)
        else:
            found.check_moved()
        found.users += 1
        return found

    def check_moved(self) -> None:
        """Refuse an environment that was sealed while this process has it open."""
        with self.gate.place(), self.lmdb.begin() as txn:
            self.refuse_if_moved(txn)

    def release(self) -> None:
        """Close it with its last user."""
        self.users -= 1
        if self.users:
            return
        self._alone(self._close)

    def _close(self) -> None:
        del _open[self.identity]
        if not self.is_broken:
            self.lmdb.sync(force=True)
        self.lmdb.close()

    def grow(self, limit_bytes: int) -> bool:
        """Make the map larger, up to the limit; False where it is as large already."""
        wanted = min(2 * self.mapped_bytes, limit_bytes)
        if wanted <= self.mapped_bytes:
            return False
        self._alone(lambda: self._resize(wanted))
        return True

    def follow(self) -> None:
        """Take over the size that another process gave the map."""
        self._alone(lambda: self._resize(0))

    def reopen(self) -> None:
        """Start again after a commit failed: LMDB does not go on by itself."""
        self.is_broken = True
        self._alone(self._reopen)

    def _reopen(self) -> None:
        self.lmdb.close()
        self._open(self.mapped_bytes)
        self.is_broken = False

    def _alone(self, action: Callable[[], None]) -> None:
        """Act while no one is inside the gate, in a thread that no interrupt reaches: half of it would be worse than all or nothing."""
        failed: list[BaseException] = []

        def act() -> None:
            self.gate.shut()
            try:
                action()
            except BaseException as error:  # noqa: BLE001 - raised below
                failed.append(error)
            finally:
                self.gate.open()

        thread = threading.Thread(target=act, name="holdfast lmdb")
        try:
            thread.start()
        except RuntimeError:  # No thread starts while the interpreter ends.
            act()
        else:
            thread.join()
        if failed:
            raise failed[0]

    def has_committed(self, number: int) -> bool:
        """Whether the transaction of this number is in the environment; for those inside who have the turn."""
        return bool(self.lmdb.info()["last_txnid"] >= number)

    def _resize(self, map_bytes: int) -> None:
        self.lmdb.set_mapsize(map_bytes)
        self.mapped_bytes = self.lmdb.info()["map_size"]

    def used_bytes(self, txn: "lmdb.Transaction[bytes]") -> int:
        """How much room the tables take, without what is free in between; for those inside."""
        stats = [txn.stat(getattr(self.tables, name)) for name in TABLES]
        return self.page_bytes * sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)

    def refuse_if_moved(self, txn: "lmdb.Transaction[bytes]") -> None:
        """Raise where everything was copied elsewhere, be it while we had it open."""
        self._refuse_if_moved(txn, self.tables.about)

    def _refuse_if_moved(self, txn: "lmdb.Transaction[bytes]", about: Handle) -> None:
        moved = txn.get(MOVED, db=about)
        if moved is not None:
            raise refusal_errors.moved(self.folder, moved.decode())

    def _open_tables(self) -> Tables:
        if self.lmdb.max_key_size() < LONGEST:
            message = (
                f"this LMDB supports keys of {self.lmdb.max_key_size()} bytes, but {LONGEST} are needed: install the package from PyPI"
            )
            raise StoreError(message)
        with self.lmdb.begin(write=True) as txn:
            self._lengthen()
            self._check_format(txn)
            tables = Tables(*[self.lmdb.open_db(name.encode(), txn=txn) for name in TABLES])
            if txn.get(b"format", db=tables.about) is None:
                txn.put(b"format", str(FORMAT).encode(), db=tables.about)
        return tables

    def _lengthen(self) -> None:
        """Give a file that was cut off its length back: reading behind its end would kill the process, reading zeros is an error."""
        data = Path(self.folder, "data.mdb")
        length = self.page_bytes * (self.lmdb.info()["last_pgno"] + 1)
        if data.stat().st_size < length:
            os.truncate(data, length)

    def _check_format(self, txn: "lmdb.Transaction[bytes]") -> None:
        """Refuse what is not ours or not known yet, before anything is written."""
        if txn.get(b"about") is None:
            if txn.stat()["entries"]:
                message = f"{self.folder} is an LMDB environment of another program: name another folder"
                raise StoreCorrupted(message)
            return
        about = self.lmdb.open_db(b"about", txn=txn, create=False)
        self._refuse_if_moved(txn, about)
        version = int(txn.get(b"format", b"0", db=about))
        if version > FORMAT:
            message = f"{self.folder} has format {version}, but this version supports up to {FORMAT}: upgrade Holdfast; nothing was changed"
            raise SchemaTooNew(message)


def refuse_if_missing(folder: str) -> None:
    """Refuse a folder in which there is no environment, without making one."""
    check_names(folder)
    if identity(folder) == NOWHERE:
        raise StoreMissing(f"there is no store at {folder}: check the URL")


def check_names(folder: str) -> None:
    """Refuse what another user placed where LMDB would open it."""
    refuse_what_others_placed(folder, Path(folder, "data.mdb"), Path(folder, "lock.mdb"))


def identity(folder: str) -> tuple[int, int]:
    """Device and inode of the environment in a folder, of nothing where there is none yet."""
    try:
        status = Path(folder, "data.mdb").stat()
    except FileNotFoundError:
        return NOWHERE
    return status.st_dev, status.st_ino


def _before_fork() -> None:
    for environment in list(_open.values()):
        environment.gate.shut(FORK_S)


def _after_fork_in_parent() -> None:
    for environment in list(_open.values()):
        environment.gate.open()


def _after_fork_in_child() -> None:
    for environment in _open.values():
        del environment.lmdb
    _open.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
