"""SQL that keeps a stale holder from writing to a table of the user's own."""

import re

from msgspec import Struct

_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")


class Fence(Struct, frozen=True):
    """Two pieces of SQL, each with one parameter, for which `token` is to be given."""

    token: int
    assignment: str
    """For the `set` clause: the row remembers who wrote it."""
    condition: str
    """For the `where` clause: no one with a larger token has written the row."""


def fence(fencing_token: int, column: str = "fencing_token", placeholder: str = "%s") -> Fence:
    """Make the SQL that fences an update of your own table by the token of a claim or a lease.

    `placeholder` is `?` with `sqlite3`. A row that was never fenced passes.
    """
    if not _COLUMN.fullmatch(column):
        raise ValueError(f"{column!r} is not the name of a column")
    if placeholder not in {"%s", "?"}:
        raise ValueError(f"placeholder is {placeholder!r}: give '%s' or '?'")
    return Fence(fencing_token, f"{column} = {placeholder}", f"coalesce({column}, 0) <= {placeholder}")
