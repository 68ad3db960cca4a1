"""Lock holders that write on, whatever happened to their lock, and the table that they write to."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from holdfast._sync.handles.lock import Lock
from holdfast._sync.handles.mapping import Dict
from holdfast.errors import LeaseLost, Refused

LEASE_S = 0.1
WRITES = 20
"""How often a holder writes before it gives the lock back."""

PAUSE_S = 0.005

TABLES = """
create table fenced (name text primary key, token integer not null) strict;
create table bare (name text primary key, token integer not null) strict;
create table accepted (n integer primary key autoincrement, into_table text not null, name text not null, token integer not null) strict;
"""

FENCED = "update fenced set token = :token where name = :name and token <= :token"
BARE = "update bare set token = :token where name = :name"


def make_tables(path: Path, names: list[str]) -> None:
    """Make the table that is protected by a fence, the one that is not, and the log of what both accepted."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        for table in ("fenced", "bare"):
            connection.executemany(f"insert into {table} values (?, 0)", [(name,) for name in names])  # noqa: S608 - one of two words
        connection.commit()


def hold_and_write(url: str, path: str, name: str) -> None:
    """Take the lock again and again, and write under its token without ever looking whether it is still held."""
    shared = Dict.from_name("shared", base_url=url)
    lock = Lock(name, holder=str(os.getpid()), lease_s=LEASE_S, base_url=url)
    pause = threading.Event()
    with closing(sqlite3.connect(path, timeout=60.0, isolation_level=None)) as table:
        # Not even the death of a process loses what was written.
        table.execute("pragma synchronous = off")
        while True:
            try:
                with lock as held:
                    for _ in range(WRITES):
                        write(table, name, held.token)
                        write_entry(shared, name, held.token)
                        pause.wait(PAUSE_S)
            except LeaseLost:
                continue


def write(table: sqlite3.Connection, name: str, token: int) -> None:
    """Write to both tables, each in a step of its own, and log what was accepted in the same step."""
    for into, statement in (("fenced", FENCED), ("bare", BARE)):
        table.execute("begin immediate")
        if table.execute(statement, {"name": name, "token": token}).rowcount:
            table.execute("insert into accepted (into_table, name, token) values (?, ?, ?)", (into, name, token))
        table.execute("commit")


def write_entry(shared: Dict[int], name: str, token: int) -> None:
    """Write to a dict, which keeps fences by itself."""
    try:
        shared.put(name, token, fence=token)
    except Refused:
        return


def stale_writes(path: Path, table: str) -> int:
    """How many writes were accepted after one under a higher token."""
    query = """
        select count(*)
        from (
            select
                token,
                max(token) over (partition by name order by n rows between unbounded preceding and current row) as highest
            from accepted
            where into_table = ?
        )
        where token < highest
    """
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute(query, (table,)).fetchone()
    return int(count)
