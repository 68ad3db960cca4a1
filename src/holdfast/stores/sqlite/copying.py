"""Copy commands on a SQLite file."""

from msgspec import json

from holdfast.commands.copying import Copying
from holdfast.stores.sqlite.log import Log
from holdfast.stores.sqlite.statements import SQL

TABLES = ("names", "messages", "values", "entries", "leases", "events", "topics", "lanes")
"""What a sealed file has under other names: processes that have it open notice at the next statement, and others pay nothing."""

COPYING, MOVED, TARGET_AT = "copying", "moved", "target_at"
"""Names in holdfast_meta."""


class Copies(Log):
    """The copying half of a transaction."""

    appended: int
    is_sealed: bool = False

    def next_n(self) -> int:
        return int(self.sql.execute(SQL["next_n"]).fetchone()[0])

    def raise_numbers(self, number: int, n: int, *, lost: bool) -> None:
        del n  # The next row's is above that of every row there.
        latest = self.latest()
        number = max(number, latest + 1)
        self.appended += 1
        if lost:
            self._note_gap(number, latest, opener=f"raised to {number}")
        self.sql.execute(SQL["append_at"], (number, "store", "copied", b"{}", self.now, 0))
        self._raise_floor(number)

    def copying(self) -> Copying | None:
        row = self.sql.execute(SQL["meta"], (COPYING,)).fetchone()
        return None if row is None else json.decode(row[0], type=Copying)

    def save_copying(self, copying: Copying | None) -> None:
        if copying is None:
            self.sql.execute(SQL["drop_meta"], (COPYING,))
        else:
            self.sql.execute(SQL["save_meta"], (COPYING, json.encode(copying).decode()))

    def seal(self, to: str, target_at: int | None) -> None:
        self.sql.execute(SQL["save_meta"], (MOVED, to))
        if target_at is not None:
            self.sql.execute(SQL["save_meta"], (TARGET_AT, str(target_at)))
        for table in TABLES:
            self.sql.execute(f"alter table holdfast_{table} rename to holdfast_moved_{table}")
        self.is_sealed = True
