"""The entries and leases of a SQLite file, as a transaction sees them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from sqlite3 import Cursor as SqlCursor
from typing import Any

from msgspec import Raw

from holdfast.records import Entry, Lease
from holdfast.stores.sqlite.queues import apart, as_json
from holdfast.stores.sqlite.rows import bindable
from holdfast.stores.sqlite.statements import SQL


class Entries:
    """The dict half of a transaction."""

    sql: SqlCursor
    now: int

    def entries(self, name: str, keys: Collection[str]) -> dict[str, Entry]:
        rows = self.sql.execute(SQL["entries"], {"dict": name, "keys": as_json(set(keys)), "now": self.now})
        return {row[1]: read_entry(row) for row in rows}

    def fences(self, name: str, keys: Collection[str]) -> dict[str, int]:
        return dict(self.sql.execute(SQL["fences"], {"dict": name, "keys": as_json(set(keys))}).fetchall())

    def scan(self, name: str, prefix: str, after: str | None, limit: int) -> Iterator[Entry]:
        asked = {"dict": name, "prefix": prefix, "after": after or "", "limit": limit, "now": self.now}
        return map(read_entry, apart(self.sql).execute(SQL["scan"], asked))

    def length(self, name: str) -> int:
        return int(self.sql.execute(SQL["length"], (name, self.now)).fetchone()[0])

    def save_entries(self, entries: Sequence[Entry]) -> None:
        rows = [(entry.dict, entry.key, bindable(entry.value), entry.revision, entry.fence, entry.expires_at) for entry in entries]
        self.sql.executemany(SQL["save_entry"], rows)

    def delete_entries(self, name: str, keys: Collection[str], fences: Mapping[str, int]) -> None:
        if fences:
            self.sql.executemany(SQL["raise_fence"], [(fence, name, key) for key, fence in fences.items()])
        asked = {"dict": name, "keys": as_json(keys)}
        self.sql.execute(SQL["bare_entries"], asked)
        self.sql.execute(SQL["delete_entries"], asked)

    def clear_dict(self, name: str) -> int:
        count = self.length(name)
        self.sql.execute(SQL["bare_dict"], (name,))
        self.sql.execute(SQL["clear_dict"], (name,))
        return count

    def lower_fences(self, name: str, newest: int, limit: int) -> int:
        return self.sql.execute(SQL["lower_fences"], {"dict": name, "newest": newest, "limit": limit}).rowcount

    def stale_entries(self, limit: int) -> list[Entry]:
        return [read_entry(row) for row in self.sql.execute(SQL["stale_entries"], (self.now, limit))]

    def leases(self, keys: Collection[tuple[str | None, str]]) -> dict[tuple[str | None, str], Lease]:
        rows = self.sql.execute(SQL["leases"], (as_json([(name or "", key) for name, key in keys]),))
        return {(lease.dict, lease.key): lease for lease in map(read_lease, rows)}

    def save_leases(self, leases: Sequence[Lease]) -> None:
        rows = [(lease.dict or "", lease.key, lease.holder, lease.lease_id, lease.token, lease.since, lease.until) for lease in leases]
        self.sql.executemany(SQL["save_lease"], rows)

    def delete_leases(self, keys: Collection[tuple[str | None, str]]) -> None:
        self.sql.executemany(SQL["delete_lease"], [(name or "", key) for name, key in keys])

    def dict_leases(self, name: str) -> list[Lease]:
        return [read_lease(row) for row in self.sql.execute(SQL["dict_leases"], (name,))]


def read_entry(row: tuple[Any, ...]) -> Entry:
    """The entry of a row."""
    name, key, value, revision, fence, expires_at = row
    return Entry(name, key, Raw(value), revision, fence, expires_at)


def read_lease(row: tuple[Any, ...]) -> Lease:
    """The lease of a row."""
    name, *rest = row
    return Lease(name or None, *rest)
