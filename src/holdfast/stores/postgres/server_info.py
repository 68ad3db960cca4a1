"""The guarantees of the server, from its settings."""

from typing import Any

from psycopg import Connection

from holdfast.stores import Guarantees

SETTINGS = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")


def guarantees_of(connection: Connection[Any]) -> Guarantees:
    """Read them from the server's settings, as they are for this user and database."""
    row = connection.execute(
        "select current_setting('server_version'), array(select current_setting(s.name) from unnest(%s::text[]) as s (name))",
        (list(SETTINGS),),
    ).fetchone()
    version, values = row if row is not None else ("", [])
    found = dict(zip(SETTINGS, values, strict=True))
    is_safe = found["fsync"] == "on" and found["full_page_writes"] == "on" and found["synchronous_commit"] != "off"
    survives: Any = "power" if is_safe else "process"
    waits = found["synchronous_standby_names"] and found["synchronous_commit"] not in ("off", "local")
    told = f", commits wait for standbys ({found['synchronous_commit']})" if waits else ""
    return Guarantees(survives, "hosts", "the server's wall clock", f"PostgreSQL {version.split()[0]}{told}", found)


def guarantees_of_borrowed(version: int) -> Guarantees:
    """What is known without asking: the connection is the caller's, and may be in the middle of something."""
    return Guarantees("process", "hosts", "the server's wall clock", f"PostgreSQL {version // 10_000}.{version % 10_000}")
