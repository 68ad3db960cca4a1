"""The seal of a SQLite file."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from holdfast.stores.seals import Sealed, sealed
from holdfast.stores.sqlite.copying import MOVED, TABLES, TARGET_AT
from holdfast.stores.sqlite.file import BUSY_S, refuse_if_missing, translate
from holdfast.stores.sqlite.statements import SQL


class SqliteSeal:
    """The seal of one file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = str(Path(path).absolute())
        self.url: str = f"sqlite:///{quote(self._path)}"

    def read(self) -> Sealed | None:
        with self._transaction() as sql:
            return _sealed(sql)

    def remove(self) -> None:
        with self._transaction() as sql:
            if _sealed(sql) is None:
                return
            for table in TABLES:
                sql.execute(f"alter table holdfast_moved_{table} rename to holdfast_{table}")
            for name in (MOVED, TARGET_AT):
                sql.execute(SQL["drop_meta"], (name,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        refuse_if_missing(self._path)
        try:
            with closing(sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)) as connection:
                # What power might take away again would leave two stores open, or none.
                connection.execute("pragma synchronous = full")
                connection.execute("begin immediate")
                with connection:
                    yield connection.cursor()
        except sqlite3.Error as error:
            raise translate(error, self._path) from error


def _sealed(sql: sqlite3.Cursor) -> Sealed | None:
    found = (sql.execute(SQL["meta"], (name,)).fetchone() for name in (MOVED, TARGET_AT))
    return sealed(*(None if row is None else str(row[0]) for row in found))
