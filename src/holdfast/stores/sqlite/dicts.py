"""The entries and leases of a SQLite file, as a transaction sees them."""

import sys
from collections.abc import Collection, Iterator
from sqlite3 import Cursor as SqlCursor
from typing import Any

from msgspec import UNSET, Raw, UnsetType, json
from msgspec.structs import astuple

from holdfast.codec.keys import KEY_BYTES
from holdfast.commands.transaction import Fenced
from holdfast.records import NO_VALUE, Entry, Lease
from holdfast.records.shares import Share, Shared, ShareOrder
from holdfast.stores.sqlite.queues import as_json
from holdfast.stores.sqlite.reading import apart
from holdfast.stores.sqlite.rows import bindable
from holdfast.stores.sqlite.statements import SQL

LAST_TEXT = chr(sys.maxunicode) * (KEY_BYTES // 4)
"""Behind a prefix, sorts behind every other key that begins with it."""


class Entries:
    """The dict half of a transaction."""

    sql: SqlCursor
    now: int

    def entries(self, name: str, keys: Collection[str]) -> dict[str, Entry]:
        rows = self.sql.execute(SQL["entries"], {"dict": name, "keys": as_json(set(keys))})
        return {row[1]: read_entry(row) for row in rows}

    def scan(self, name: str, prefix: str, after: str | None, limit: int) -> Iterator[Entry]:
        # Without a last key it would go on through everything behind the prefix.
        asked = {"dict": name, "prefix": prefix, "last": prefix + LAST_TEXT, "after": after or "", "limit": limit, "now": self.now}
        return map(read_entry, apart(self.sql).execute(SQL["scan"], asked))

    def length(self, name: str) -> int:
        return int(self.sql.execute(SQL["length"], (name, self.now)).fetchone()[0])

    def fenced(self, after: tuple[str, str]) -> Iterator[Fenced]:
        return (Fenced(*row) for row in apart(self.sql).execute(SQL["fenced"], after))

    def _clear_dict(self, name: str) -> int:
        count = self.length(name)
        self.sql.execute(SQL["bare_dict"], (name,))
        self.sql.execute(SQL["clear_dict"], (name,))
        return count

    def leases(self, keys: Collection[tuple[str | None, str]]) -> dict[tuple[str | None, str], Lease]:
        rows = self.sql.execute(SQL["leases"], (as_json([(name or "", key) for name, key in keys]),))
        return {(lease.dict, lease.key): lease for lease in map(read_lease, rows)}

    def leases_of(self, name: str | UnsetType | None = UNSET, prefix: str = "", after: str | None = None) -> Iterator[Lease]:
        if name is UNSET:
            return map(read_lease, apart(self.sql).execute(SQL["all_leases"]))
        asked = (name or "", after or "", prefix, prefix + LAST_TEXT)
        return map(read_lease, apart(self.sql).execute(SQL["leases_of"], asked))

    def shares(self, key: str, lease_ids: Collection[str]) -> dict[str, Share]:
        rows = self.sql.execute(SQL["shares"], (key, as_json(list(lease_ids))))
        return {share.lease_id: share for share in (Share(*row) for row in rows)}

    def find_shares(self, key: str, by: ShareOrder, limit: int, after: int = 0) -> Iterator[Share]:
        statement = SQL["shares_in_line" if by == "line" else "shares_by_end"]
        return (Share(*row) for row in apart(self.sql).execute(statement, (key, by != "grants", after, limit)))


def read_entry(row: tuple[Any, ...]) -> Entry:
    """The entry of a row."""
    name, key, value, revision, fence, expires_at = row
    return Entry(name, key, NO_VALUE if value is None else Raw(value), revision, fence, expires_at)


def read_lease(row: tuple[Any, ...]) -> Lease:
    """The lease of a row."""
    name, *rest, shared = row
    return Lease(name or None, *rest) if shared is None else Shared(None, *rest, *json.decode(shared))


def write_entry(entry: Entry) -> tuple[object, ...]:
    """The row of an entry."""
    value = None if entry.value is NO_VALUE else bindable(entry.value)
    return (entry.dict, entry.key, value, entry.revision, entry.fence, entry.expires_at)


def write_lease(lease: Lease) -> tuple[object, ...]:
    """The row of a lease."""
    return (lease.dict or "", lease.key, lease.holder, lease.lease_id, lease.token, lease.since, lease.until)


def write_shared(shared: Shared) -> tuple[object, ...]:
    """The row of what stands for a name with capacity."""
    return (*write_lease(shared), as_json(astuple(shared)[len(Lease.__struct_fields__) :]))
