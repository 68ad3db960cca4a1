"""Backups of a SQLite file."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from holdfast.errors import StoreCorrupted, StoreError
from holdfast.stores.files.backups import Progress, put_file, refuse_existing
from holdfast.stores.files.beside import OURS_ALONE, beside, sync_folder
from holdfast.stores.sqlite.file import BUSY_S, refuse_if_missing, translate

PAGES = 2_000
"""So many are copied between two looks at the progress."""

ALONE_S = 2.0
"""How long a program that has just ended may take to let go of the file."""


class SqliteBackups:
    """The backups of one file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()

    def write(self, target: Path, progress: Progress) -> None:
        refuse_if_missing(str(self._path))
        refuse_existing(target)
        part = target.with_name(f"{target.name}.part")
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, OURS_ALONE))
        try:
            with closing(self._connect(self._path)) as source, closing(self._connect(part)) as made:
                # One moment of the file: without a transaction, each write of another program would start the copy again.
                source.execute("begin")
                source.execute("select count(*) from sqlite_master").fetchone()
                source.backup(made, pages=PAGES, progress=lambda _, left, total: progress(total - left, total))
                # The file alone is the backup: there must be no log beside it.
                made.execute("pragma journal_mode = delete")
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(target)
        except sqlite3.Error as error:
            raise translate(error, str(self._path)) from error
        finally:
            part.unlink(missing_ok=True)
        sync_folder(target.parent)

    def damage(self, limit: int) -> list[str]:
        refuse_if_missing(str(self._path))
        try:
            with closing(self._connect(self._path)) as connection:
                found = [str(row[0]) for row in connection.execute(f"pragma integrity_check({limit})")]
        except sqlite3.DatabaseError as error:
            return [str(error)]
        return [] if found == ["ok"] else found

    def put(self, backup: Path, aside: Path, progress: Progress) -> bool:
        _refuse_what_is_no_backup(backup)
        if self._path.exists():
            self._refuse_if_open()
            for suffix in ("-wal", "-shm"):
                beside(self._path, suffix).unlink(missing_ok=True)
        return put_file(backup, self._path, aside, progress)

    def _refuse_if_open(self) -> None:
        """Move the log into the file and remove it, which SQLite does only for the last that has the file open."""
        try:
            with closing(self._connect(self._path, ALONE_S)) as connection:
                connection.execute("pragma journal_mode = delete")
        except sqlite3.OperationalError as error:
            raise StoreError(f"{self._path} is in use: end every program that has it open, then restore ({error})") from error
        except sqlite3.DatabaseError:
            return  # Damaged: SQLite cannot say.

    @staticmethod
    def _connect(path: Path, busy_s: float = BUSY_S) -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=busy_s, isolation_level=None)


def _refuse_what_is_no_backup(backup: Path) -> None:
    if not backup.is_file():
        raise StoreError(f"there is no backup {backup}")
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{backup.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        is_ours = connection.execute("select 1 from sqlite_master where name = 'holdfast_meta'").fetchone()
        if is_ours and connection.execute("pragma quick_check(1)").fetchone() == ("ok",):
            return
    raise StoreCorrupted(f"{backup} is not an intact SQLite file of a store: nothing was changed")
