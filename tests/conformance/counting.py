"""A SQLite store whose statements are counted; one `executemany` is one."""

from pathlib import Path
from typing import Any

from holdfast.clock import Clock
from holdfast.stores import Store
from holdfast.stores.sqlite.store import SqliteStore


class Counted:
    """Stands before a connection or a cursor and counts what is executed through it."""

    def __init__(self, inner: Any, counts: list[int]) -> None:
        self._inner = inner
        self._counts = counts

    def execute(self, *arguments: Any) -> Any:
        self._counts[0] += 1
        return self._inner.execute(*arguments)

    def executemany(self, *arguments: Any) -> Any:
        self._counts[0] += 1
        return self._inner.executemany(*arguments)

    def cursor(self) -> "Counted":
        return Counted(self._inner.cursor(), self._counts)

    def __iter__(self) -> Any:
        return iter(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class CountedSqliteFactory:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts = [0]

    def make(self, clock: Clock) -> Store:
        store = SqliteStore(self.folder / "store.db", clock=clock, durability="process")
        store._writer.connection = Counted(store._writer.connection, self.counts)  # type: ignore[assignment]
        return store

    def statements(self, store: Store) -> int:
        return self.counts[0]
