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

PAUSE_S = 0.01

TABLES = """
create table fenced (token integer not null);
create table bare (token integer not null);
create table accepted (n integer primary key autoincrement, into_table text not null, token integer not null);
insert into fenced values (0);
insert into bare values (0);
"""

FENCED = "update fenced set token = :token where token <= :token"
BARE = "update bare set token = :token"


def make_tables(path: Path) -> None:
    """Make the table that is protected by a fence, the one that is not, and the log of what both accepted."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)


def hold_and_write(url: str, path: str) -> None:
    """Take the lock again and again, and write under its token without ever looking whether it is still held."""
    shared = Dict.from_name("shared", base_url=url)
    lock = Lock("row", holder=str(os.getpid()), lease_s=LEASE_S, base_url=url)
    pause = threading.Event()
    with closing(sqlite3.connect(path, timeout=60.0, isolation_level=None)) as table:
        # Not even the death of a process loses what was written.
        table.execute("pragma synchronous = off")
        while True:
            try:
                with lock as held:
                    for _ in range(WRITES):
                        write(table, held.token)
                        write_entry(shared, held.token)
                        pause.wait(PAUSE_S)
            except LeaseLost:
                continue


def write(table: sqlite3.Connection, token: int) -> None:
    """Write to both tables, each in a step of its own, and log what was accepted in the same step."""
    for into, statement in (("fenced", FENCED), ("bare", BARE)):
        table.execute("begin immediate")
        if table.execute(statement, {"token": token}).rowcount:
            table.execute("insert into accepted (into_table, token) values (?, ?)", (into, token))
        table.execute("commit")


def write_entry(shared: Dict[int], token: int) -> None:
    """Write to a dict, which keeps fences by itself."""
    try:
        shared.put("row", token, fence=token)
    except Refused:
        return


def stale_writes(path: Path, table: str) -> int:
    """How many writes were accepted after one under a higher token."""
    query = """
        select count(*)
        from (
            select token, max(token) over (order by n rows between unbounded preceding and current row) as highest
            from accepted
            where into_table = ?
        )
        where token < highest
    """
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute(query, (table,)).fetchone()
    return int(count)
