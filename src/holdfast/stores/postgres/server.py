"""What the server at the other end really promises."""

from typing import Any

from psycopg import Connection

from holdfast.stores import Guarantees


def guarantees_of(connection: Connection[Any]) -> Guarantees:
    """Read them from the server's settings, as they are for this user and database."""
    row = connection.execute(
        "select current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'), "
        "current_setting('synchronous_commit'), current_setting('synchronous_standby_names')"
    ).fetchone()
    version, fsync, full_pages, commit, standbys = row if row is not None else ("", "", "", "", "")
    survives: Any = "power" if fsync == "on" and full_pages == "on" and commit != "off" else "process"
    waits = f", commits wait for standbys ({commit})" if standbys and commit not in ("off", "local") else ""
    return Guarantees(survives, "hosts", "the server's wall clock", f"PostgreSQL {version.split()[0]}{waits}")


def guarantees_of_borrowed(version: int) -> Guarantees:
    """What is known without asking: the connection is the caller's, and may be in the middle of something."""
    return Guarantees("process", "hosts", "the server's wall clock", f"PostgreSQL {version // 10_000}.{version % 10_000}")
