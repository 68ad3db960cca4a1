"""Opening a SQLite file: its settings, its tables, its clock; and the errors that SQLite reports."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from msgspec import DecodeError, MsgspecError, json

from holdfast.clock import HOST, Anchor, Host, anchored
from holdfast.commands import refusal_errors
from holdfast.errors import HoldfastError, SchemaTooNew, StoreCorrupted, StoreError, StoreFull, StoreMissing, StoreUnavailable
from holdfast.stores.files import Durability
from holdfast.stores.files.beside import beside, refuse_what_others_placed
from holdfast.stores.files.replaced import inode_of, warn_of_copy
from holdfast.stores.sqlite.counts import count_again
from holdfast.stores.sqlite.statements import SQL

N = TypeVar("N")

PAGE_BYTES = 2_048
"""Of a new file: a commit writes whole pages, and small ones cost less."""

CHECKPOINT_PAGES = 10_000
BUSY_S = 10.0
"""How long a writer who takes no turns, such as the application itself, may hold the file."""

UNREADABLE = (sqlite3.Error, MsgspecError, UnicodeDecodeError, LookupError, TypeError)
"""What SQLite, or reading rows that are no longer what we wrote, may raise."""

OLDEST_SQLITE = (3, 35)

NEEDED = 1
"""How many scripts of `schema/` a release must know to work on a file that this one makes.

One that only adds leaves the number alone. One that takes away what an older release uses sets `version` to its own number.
"""

LATEST = "latest"
"""The name in holdfast_meta of a moment at which something was written that left no event."""


def open_connection(path: str, durability: Durability) -> sqlite3.Connection:
    """A connection that any one thread at a time may use, in no transaction."""
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        connection.execute(f"pragma page_size = {PAGE_BYTES}")
        connection.execute("pragma journal_mode = wal")
        connection.execute(f"pragma synchronous = {'full' if durability == 'power' else 'normal'}")
        connection.execute(f"pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")
        # On some systems SQLite overwrites what it deletes unless told not to, which here is every message.
        connection.execute("pragma secure_delete = off")
        # Finds damaged pages when they are read, at no cost that can be measured.
        connection.execute("pragma cell_size_check = on")
        # The application's own tables may have triggers; ours must not set each other off.
        connection.execute("pragma recursive_triggers = off")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def check_library() -> None:
    """Refuse a SQLite that lacks what we use."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        message = f"Python was built with SQLite {sqlite3.sqlite_version}; Holdfast needs 3.35 or newer"
        raise StoreError(message)


def migrate(sql: sqlite3.Cursor, path: str) -> None:
    """Bring the tables up to date, inside a transaction. Our version stands in a table of ours: the file may be the application's."""
    sql.execute("create table if not exists holdfast_meta (name text primary key, value text not null) without rowid")
    needed = _read_note(sql.execute(SQL["meta"], ("version",)).fetchone(), int, path) or 0
    expanded = _read_note(sql.execute(SQL["meta"], ("expanded",)).fetchone(), int, path) or needed
    moved = sql.execute(SQL["meta"], ("moved",)).fetchone()
    if moved:
        raise refusal_errors.moved(path, moved[0])
    steps = migrations()
    if needed > len(steps):
        message = f"{path} has format {needed}, but this version supports up to {len(steps)}: upgrade Holdfast; the file was not changed"
        raise SchemaTooNew(message)
    for step in steps[expanded:]:
        for statement in split_script(step):
            sql.execute(statement)
    if not expanded:
        sql.execute(SQL["save_meta"], ("version", str(NEEDED)))
    if expanded < len(steps):
        sql.execute(SQL["save_meta"], ("expanded", str(len(steps))))
    count_again(sql)


@cache
def migrations() -> Sequence[str]:
    """The scripts that lead from each version to the next; read once, since a process may give up the right to read them."""
    folder = files(__package__) / "schema"
    return tuple(part.read_text("utf-8") for part in sorted(folder.iterdir(), key=lambda part: part.name) if part.name.endswith(".sql"))


def split_script(script: str) -> list[str]:
    """The statements of a script, so that they can run inside a transaction: `executescript` commits first."""
    statements, text = [], ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            statements.append(text)
            text = ""
    return statements


def read_anchor(sql: sqlite3.Cursor, path: str, host: Host = HOST) -> tuple[Anchor, bool]:
    """The anchor to measure from, kept in the file, and whether it had to be made again; ask inside a transaction."""
    row = sql.execute(SQL["meta"], ("anchor",)).fetchone()
    stored = _read_note(row, Anchor, path)
    latest = sql.execute(SQL["latest"]).fetchone()
    noted = _read_note(sql.execute(SQL["meta"], (LATEST,)).fetchone(), int, path)
    anchor = anchored(stored, max(latest[1] if latest else 0, noted or 0), host)
    if anchor != stored:
        sql.execute(SQL["save_meta"], ("anchor", json.encode(anchor).decode()))
    return anchor, stored is not None and anchor != stored


def note_file(sql: sqlite3.Cursor, path: str) -> None:
    """Remember which file this is, inside a transaction; say so where it is another one than the last time."""
    noted, found = _read_note(sql.execute(SQL["meta"], ("file",)).fetchone(), int, path), inode_of(path)
    if noted is None or warn_of_copy(path, noted, found):
        sql.execute(SQL["save_meta"], ("file", str(found)))


def _read_note(row: tuple[str] | None, kind: type[N], path: str) -> N | None:
    try:
        return None if row is None else json.decode(row[0], type=kind)
    except DecodeError as error:
        message = f"{path} is damaged: restore a backup (holdfast_meta says {row[0] if row else None!r})"
        raise StoreCorrupted(message) from error


ACCESS = "Run the program as the owner, give the folder and its files to a common group, or name another file in the URL."
"""What to do about a store that a user may not open."""


def check_folder(path: str) -> None:
    """Refuse early, and in words, what SQLite would call "unable to open database file"."""
    _check_names(path)
    folder = Path(path).parent
    if Path(path).is_dir():
        message = f"{path} is a folder: name a file in it, as in sqlite:///{path.rstrip('/')}/jobs.db"
        raise StoreError(message)
    if not folder.is_dir():
        message = f"the folder {folder} of the store {path} does not exist: create it"
        raise StoreError(message)
    if not os.access(folder, os.W_OK):
        message = f"the folder {folder} of the store {path} is not writable: SQLite keeps its log beside the file. {ACCESS}"
        raise StoreError(message)
    if Path(path).exists() and not os.access(path, os.R_OK | os.W_OK):
        message = f"{path} may not be read and written by this user. {ACCESS}"
        raise StoreError(message)


def _check_names(path: str) -> None:
    try:
        refuse_what_others_placed(path, *(beside(path, suffix) for suffix in ("-wal", "-shm", "-journal")))
    except PermissionError as error:
        message = f"{path} cannot be reached by this user: {error.strerror}. {ACCESS}"
        raise StoreError(message) from error


def refuse_if_missing(path: str) -> None:
    """Refuse a path at which there is no store of ours, without making one."""
    _check_names(path)
    missing = StoreMissing(f"there is no store at {path}: check the URL")
    if not Path(path).is_file():
        raise missing
    try:
        # `rw` and not `ro`, for a file whose log is there must be readable; neither creates one.
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=BUSY_S)) as reader:
            found = reader.execute("select 1 from sqlite_master where name = 'holdfast_meta'").fetchone()
    except sqlite3.Error as error:
        raise translate(error, path) from error
    if found is None:
        raise missing


def translate(error: Exception, path: str) -> HoldfastError:
    """What SQLite reports, or what reading a damaged row raised, as one of ours."""
    if isinstance(error, HoldfastError):
        return error
    if not isinstance(error, sqlite3.Error) or "Could not decode to UTF-8" in str(error):
        return StoreCorrupted(f"{path} is damaged: restore a backup ({type(error).__name__}: {error})")
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    match code:
        case sqlite3.SQLITE_ERROR if "no such table: holdfast_" in str(error) and (url := _read_moved(path)):
            return refusal_errors.moved(path, url)
        case sqlite3.SQLITE_FULL:
            return StoreFull(f"no space is left for {path}: free some; nothing was written ({error})")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreCorrupted(f"{path} is damaged or not a SQLite file: restore a backup ({error})")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnavailable(f"{path} was locked for {BUSY_S:.0f} s by a program that writes to it: end its transaction ({error})")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_AUTH:
            return StoreError(f"{path} cannot be written: check the permissions of the file and its folder ({error})")
        case _:
            return StoreError(f"{path}: SQLite reports {error}; nothing was written")


def _read_moved(path: str) -> str | None:
    """Where the file was copied to, if it was sealed while we had it open."""
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as reader:
            row = reader.execute(SQL["meta"], ("moved",)).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])
