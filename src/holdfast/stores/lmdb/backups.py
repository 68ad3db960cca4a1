"""Backups of an LMDB environment."""

import fcntl
import os
import shutil
from pathlib import Path

import lmdb

from holdfast.errors import StoreCorrupted, StoreError
from holdfast.stores.files.backups import Progress, put_file, refuse_existing
from holdfast.stores.files.beside import OURS_ALONE, sync_folder
from holdfast.stores.lmdb.environment import refuse_if_missing
from holdfast.stores.lmdb.failures import translate
from holdfast.stores.lmdb.tables import TABLES

DATA, LOCK = "data.mdb", "lock.mdb"


class LmdbBackups:
    """The backups of one folder; no store in this process may have it open, which would break LMDB's locks."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder = Path(path).absolute()

    def write(self, target: Path, progress: Progress) -> None:
        refuse_if_missing(str(self._folder))
        refuse_existing(target)
        part = target.with_name(f"{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700)
        try:
            with opened(self._folder) as environment:
                environment.copy(str(part), compact=True)
            (part / DATA).chmod(OURS_ALONE)
            with (part / DATA).open("rb") as file:
                os.fsync(file.fileno())
            sync_folder(part)
            part.rename(target)
        except lmdb.Error as error:
            raise translate(error, str(self._folder)) from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
        sync_folder(target.parent)
        progress(1, 1)

    def damage(self, limit: int) -> list[str]:
        refuse_if_missing(str(self._folder))
        return _unreadable(self._folder)[:limit]

    def put(self, backup: Path, aside: Path, progress: Progress) -> bool:
        data = backup / DATA if backup.is_dir() else backup
        _refuse_what_is_no_backup(data)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._refuse_if_open()
        (self._folder / LOCK).unlink(missing_ok=True)
        return put_file(data, self._folder / DATA, aside, progress)

    def _refuse_if_open(self) -> None:
        """Every process that has the environment open has a lock on the first byte of the lock file."""
        if not (self._folder / LOCK).exists():
            return
        with (self._folder / LOCK).open("r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
            except OSError as error:
                raise StoreError(f"{self._folder} is in use: end every program that has it open, then restore") from error


def opened(folder: Path) -> lmdb.Environment:
    """The environment, to read; no store in this process may have it open."""
    return lmdb.open(str(folder), max_dbs=len(TABLES), create=False, readonly=True)


def _unreadable(folder: Path) -> list[str]:
    """Read every page of every table."""
    try:
        with opened(folder) as environment, environment.begin() as txn:
            names = [bytes(name) for name, _ in txn.cursor()]
            for name in names:
                for _ in txn.cursor(environment.open_db(name, txn=txn, create=False)):
                    pass
    except lmdb.Error as error:
        return [str(error)]
    return [] if b"about" in names else ["it has no table of Holdfast"]


def _refuse_what_is_no_backup(data: Path) -> None:
    if not data.is_file():
        raise StoreError(f"there is no backup {data}")
    try:
        opened = lmdb.open(str(data), subdir=False, max_dbs=len(TABLES), create=False, readonly=True, lock=False)
        with opened as environment, environment.begin() as txn:
            if txn.get(b"about") is not None:
                return
    except lmdb.Error as error:
        raise StoreCorrupted(f"{data} is not an intact LMDB file of a store: nothing was changed ({error})") from error
    raise StoreCorrupted(f"{data} is not an LMDB file of a store: nothing was changed")
