"""The entries and leases of a SQLite file, as a transaction sees them."""

from collections.abc import Collection, Iterator, Sequence
from sqlite3 import Cursor as SqlCursor
from typing import Any

from msgspec import Raw

from holdfast.commands.transaction import Fenced
from holdfast.records import NO_VALUE, Entry, Lease
from holdfast.stores.sqlite.queues import apart, as_json
from holdfast.stores.sqlite.rows import bindable
from holdfast.stores.sqlite.statements import SQL


class Entries:
    """The dict half of a transaction."""

    sql: SqlCursor
    now: int

    def entries(self, name: str, keys: Collection[str]) -> dict[str, Entry]:
        rows = self.sql.execute(SQL["entries"], {"dict": name, "keys": as_json(set(keys))})
        return {row[1]: read_entry(row) for row in rows}

    def scan(self, name: str, prefix: str, after: str | None, limit: int) -> Iterator[Entry]:
        asked = {"dict": name, "prefix": prefix, "after": after or "", "limit": limit, "now": self.now}
        return map(read_entry, apart(self.sql).execute(SQL["scan"], asked))

    def length(self, name: str) -> int:
        return int(self.sql.execute(SQL["length"], (name, self.now)).fetchone()[0])

    def save_entries(self, entries: Sequence[Entry]) -> None:
        kept, gone = list[tuple[object, ...]](), list[tuple[str, str]]()
        for entry in entries:
            value = None if entry.value is NO_VALUE else bindable(entry.value)
            if value is None and not entry.fence:
                gone.append((entry.dict, entry.key))
            else:
                kept.append((entry.dict, entry.key, value, entry.revision, entry.fence, entry.expires_at))
        self.sql.executemany(SQL["save_entry"], kept)
        if gone:
            self.sql.executemany(SQL["delete_entry"], gone)

    def fenced(self, after: tuple[str, str]) -> Iterator[Fenced]:
        return (Fenced(*row) for row in apart(self.sql).execute(SQL["fenced"], after))

    def _clear_dict(self, name: str) -> int:
        count = self.length(name)
        self.sql.execute(SQL["bare_dict"], (name,))
        self.sql.execute(SQL["clear_dict"], (name,))
        return count

    def stale_entries(self, limit: int) -> list[Entry]:
        return [read_entry(row) for row in self.sql.execute(SQL["stale_entries"], (self.now, limit))]

    def leases(self, keys: Collection[tuple[str | None, str]]) -> dict[tuple[str | None, str], Lease]:
        rows = self.sql.execute(SQL["leases"], (as_json([(name or "", key) for name, key in keys]),))
        return {(lease.dict, lease.key): lease for lease in map(read_lease, rows)}

    def save_leases(self, leases: Sequence[Lease]) -> None:
        held = [lease for lease in leases if not lease.is_released]
        if held:
            rows = [(lease.dict or "", lease.key, lease.holder, lease.lease_id, lease.token, lease.since, lease.until) for lease in held]
            self.sql.executemany(SQL["save_lease"], rows)
        if len(held) < len(leases):
            self.sql.executemany(SQL["delete_lease"], [(lease.dict or "", lease.key) for lease in leases if lease.is_released])

    def scan_leases(self, name: str | None) -> Iterator[Lease]:
        rows = apart(self.sql)
        return map(read_lease, rows.execute(SQL["all_leases"]) if name is None else rows.execute(SQL["dict_leases"], (name,)))


def read_entry(row: tuple[Any, ...]) -> Entry:
    """The entry of a row."""
    name, key, value, revision, fence, expires_at = row
    return Entry(name, key, NO_VALUE if value is None else Raw(value), revision, fence, expires_at)


def read_lease(row: tuple[Any, ...]) -> Lease:
    """The lease of a row."""
    name, *rest = row
    return Lease(name or None, *rest)
