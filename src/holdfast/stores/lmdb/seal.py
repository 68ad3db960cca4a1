"""The seal of an LMDB environment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import lmdb

from holdfast.stores.lmdb.environment import FIRST_MAP_BYTES, MOVED, TARGET_AT, Environment, refuse_if_missing
from holdfast.stores.lmdb.failures import translate
from holdfast.stores.lmdb.tables import TABLES
from holdfast.stores.seals import Sealed, sealed


class LmdbSeal:
    """The seal of one environment."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder = str(Path(path).absolute())
        self.url: str = f"lmdb:///{quote(self._folder)}"

    def read(self) -> Sealed | None:
        with self._environment() as environment, environment.begin() as txn:
            about = environment.open_db(b"about", txn=txn, create=False)
            found = (txn.get(name, db=about) for name in (MOVED, TARGET_AT))
            return sealed(*(None if value is None else value.decode() for value in found))

    def remove(self) -> None:
        with self._environment() as environment, environment.begin(write=True) as txn:
            about = environment.open_db(b"about", txn=txn, create=False)
            for name in (MOVED, TARGET_AT):
                txn.delete(name, db=about)

    @contextmanager
    def _environment(self) -> Iterator[lmdb.Environment]:
        """The environment as this process has it open; two at once would break LMDB's locks."""
        refuse_if_missing(self._folder)
        try:
            shared = Environment.opened(self._folder)
            if shared is None:
                with lmdb.open(self._folder, map_size=FIRST_MAP_BYTES, max_dbs=len(TABLES), create=False) as environment:
                    yield environment
                return
            with shared.gate.place():
                yield shared.lmdb
        except lmdb.Error as error:
            raise translate(error, self._folder) from error
