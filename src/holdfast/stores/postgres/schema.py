"""The schema of a store: created at the first use, migrated forward, refused if it is newer than this version.

What to do is written once, as generators that yield a statement and are sent the first row of its result; threads and tasks each have a few
lines that carry it out.
"""

import logging
import re
from collections.abc import Generator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple, Self, TypeVar

from psycopg import AsyncCursor, Connection, Cursor, sql

from holdfast.errors import SchemaTooNew, StoreError, StoreMissing
from holdfast.version import __version__

R = TypeVar("R")
Row = tuple[Any, ...]
Statement = tuple[bytes | sql.Composed, tuple[object, ...]]
Steps = Generator[Statement, Row, R]

LOCK = 0x686F6C64_66617374
"""The advisory lock under which one process at a time migrates."""

OLDEST_SERVER = 140_000

SETTINGS = b"select set_config('search_path', %s, true), set_config('check_function_bodies', %s, true)"
"""Until the end of the transaction."""

FOUND = """
select coalesce(max(value) filter (where name = 'version'), '0')::integer,
  pg_is_in_recovery() or count(*) filter (where name = 'moved' or (name = 'home' and value = concat_ws(
    '/',
    (select system_identifier from pg_control_system()), (select relnamespace from pg_class where oid = {meta}::regclass),
    extract(epoch from pg_postmaster_start_time())
  ))) > 0,
  coalesce(max(value) filter (where name = 'functions'), ''), count(*) filter (where name = 'moved') > 0
from {schema}.meta
"""
"""A standby has the home of its primary, and changes nothing."""

logger: logging.Logger = logging.getLogger(__name__)


@cache
def texts_in(folder: str) -> list[str]:
    """The SQL files of a folder, in the order of their names."""
    found = [path for path in (files(__package__) / folder).iterdir() if path.name.endswith(".sql")]
    return [path.read_text("utf-8") for path in sorted(found, key=lambda path: path.name)]


def newest() -> int:
    """The version that this code makes."""
    return len(texts_in("schema"))


class Functions(NamedTuple):
    """Which functions a schema has: the release that installed them, and a digest of their texts."""

    release: tuple[int, ...]
    digest: str

    @classmethod
    def parse(cls, kept: str) -> Self:
        """Read what is kept in `meta`; stores made before it was kept have the oldest."""
        release, _, digest = kept.partition(" ")
        return cls(tuple(map(int, re.findall(r"\d+", release)[:3])), digest)

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.release))} {self.digest}"

    def may_stay(self) -> bool:
        """Whether they need not be replaced by ours: they are the same, or of a newer release, which an older process leaves alone.

        So processes of two releases side by side agree on the newer one's functions, whichever opens the store last.
        """
        ours = functions()
        return self.digest == ours.digest or self.release > ours.release


@cache
def functions() -> Functions:
    """Those of this code."""
    digest = sha256("\0".join(texts_in("functions")).encode()).hexdigest()[:16]
    return Functions(Functions.parse(__version__).release, digest)


class State(NamedTuple):
    """What is there of a schema."""

    version: int = 0
    at_home: bool = True
    """Whether this run of this server serves it already: see functions/home.sql."""
    has_functions: bool = True
    """Whether its functions need not be replaced; those of a store that was moved away are not."""


def state(schema: str) -> Steps[State]:
    """What is there. Raises `SchemaTooNew` for a version that this code does not know."""
    exists = b"select count(*) from pg_tables where schemaname = %s and tablename = 'meta'"
    (count,) = yield exists, (schema,)
    if not count:
        return State()
    meta = sql.Literal(sql.Identifier(schema, "meta").as_string(None))
    (found, at_home, kept, is_moved) = yield sql.SQL(FOUND).format(schema=sql.Identifier(schema), meta=meta), ()
    if found > newest():
        raise SchemaTooNew(f"schema {schema!r} has version {found}, and this Holdfast knows {newest()}: upgrade Holdfast")
    return State(found, at_home, has_functions=is_moved or Functions.parse(kept).may_stay())


def apply(schema: str) -> Steps[None]:
    """Apply what is missing, inside the open transaction, whose settings stay as they are."""
    if (yield from state(schema)) == State(newest()):
        return
    # Whoever came first has done it. A pooler in transaction mode keeps no session lock.
    yield b"select pg_advisory_xact_lock(%s)", (LOCK,)
    found = yield from state(schema)
    if found.version != newest() or not found.has_functions:
        yield from make(schema, found.version)
    if not (yield from state(schema)).at_home:
        (begun,) = yield sql.SQL("select {}.begin_here()").format(sql.Identifier(schema)), ()
        if begun == "restored":
            logger.warning("Schema %r was restored here: its numbers go on at the clock; watches may have to begin anew", schema)


def make(schema: str, found: int) -> Steps[None]:
    """Bring the schema from the version found to this one, and its functions to those of this code."""
    before = yield b"select current_setting('search_path'), current_setting('check_function_bodies')", ()
    (has_schema, path) = yield b"select (select count(*) from pg_namespace where nspname = %s), quote_ident(%s)", (schema, schema)
    if not has_schema:
        yield sql.SQL("create schema {}").format(sql.Identifier(schema)), ()
    # The files name no schema: what they make lies in this one, and its functions find it there whatever the caller's path is.
    yield SETTINGS, (path, "off")
    for text in (*texts_in("schema")[found:], *texts_in("functions")):
        yield text.encode(), ()
    yield b"select save_meta('version', %s), save_meta('functions', %s)", (str(newest()), str(functions()))
    yield SETTINGS, before


def check_server() -> Steps[None]:
    """Refuse a server that cannot be a store."""
    number, encoding = yield b"select current_setting('server_version_num')::integer, current_setting('server_encoding')", ()
    if number < OLDEST_SERVER:
        raise StoreError(f"PostgreSQL {number // 10_000} is too old: 14 or newer is needed")
    if encoding != "UTF8":
        raise StoreError(f"the database has the encoding {encoding}, and names and values need UTF8: create one with encoding 'UTF8'")


def carry_out(steps: Steps[R], cursor: Cursor[Row]) -> R:
    """Take the steps, for threads."""
    try:
        statement, parameters = next(steps)
        while True:
            cursor.execute(statement, parameters or None)
            statement, parameters = steps.send((cursor.fetchone() or ()) if cursor.description else ())
    except StopIteration as done:
        result: R = done.value
        return result


async def carry_out_async(steps: Steps[R], cursor: AsyncCursor[Row]) -> R:
    """Take the steps, for tasks."""
    try:
        statement, parameters = next(steps)
        while True:
            await cursor.execute(statement, parameters or None)
            statement, parameters = steps.send((await cursor.fetchone() or ()) if cursor.description else ())
    except StopIteration as done:
        result: R = done.value
        return result


def refuse_if_missing(connection: Connection[Any], schema: str, where: str) -> None:
    """Refuse a schema that has no store in it, without making one."""
    with connection.cursor() as cursor:
        if carry_out(state(schema), cursor).version == 0:
            raise StoreMissing(f"there is no store in schema {schema!r} of {where}: check the URL")


def begin(schema: str) -> Steps[None]:
    """Apply what is missing, in a transaction of our own."""
    # A standby that is away must not keep a store from being opened; one that takes over begins by itself.
    yield b"select set_config('synchronous_commit', 'local', true) where current_setting('synchronous_commit') <> 'off'", ()
    yield from apply(schema)


def begin_here(connection: Connection[Any], schema: str) -> None:
    """Let the store go on above what may have been lost, on a new connection: the server may have been started anew, with other data."""
    with connection.cursor() as cursor:
        found = carry_out(state(schema), cursor)
        if found.version == newest() and not found.at_home:
            with connection.transaction():
                carry_out(begin(schema), cursor)


def is_behind(connection: Connection[Any], schema: str) -> bool:
    """Whether the schema must be migrated; refuses a server that cannot be a store."""
    with connection.cursor() as cursor:
        carry_out(check_server(), cursor)
        return carry_out(state(schema), cursor) != State(newest())


def migrate(connection: Connection[Any], schema: str) -> None:
    """Bring the schema to this version, in one transaction."""
    with connection.cursor() as cursor, connection.transaction():
        carry_out(begin(schema), cursor)
