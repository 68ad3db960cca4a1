"""The schema of a store: created at the first use, expanded by newer releases, refused if a release changed what this one relies on.

What to do is written once, as generators that yield a statement and are sent the first row of its result; `_async.steps` carries it out.
"""

import logging
from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from psycopg import Connection, sql

from holdfast.errors import NotAllowed, SchemaTooNew, StoreError, StoreMissing
from holdfast.stores.postgres._sync.steps import carry_out
from holdfast.stores.postgres.function_names import digest, function_texts, names, own, texts_in
from holdfast.version import __version__

R = TypeVar("R")
Row = tuple[Any, ...]
Statement = tuple[bytes | sql.Composed, tuple[object, ...] | dict[str, object]]
Steps = Generator[Statement, Row, R]

LOCK = 0x686F6C64_66617374
"""The advisory lock under which one process at a time migrates."""

OLDEST_SERVER = 140_000

SETTINGS = b"select set_config('search_path', %s, true), set_config('check_function_bodies', %s, true)"
"""Until the end of the transaction."""

NEEDED = 3
"""How many files of `schema/` a release must know to work on a schema that this one makes; before, functions had no digest.

A file that only adds leaves the number alone. One that takes away what an older release uses sets `version` in `meta` to its own number.
"""

FOUND = """
select coalesce(max(value) filter (where name = 'version'), '0')::integer,
  coalesce(max(value) filter (where name = 'expanded'), max(value) filter (where name = 'version'), '0')::integer,
  pg_is_in_recovery() or count(*) filter (where name = 'moved' or (name = 'home' and value = concat_ws(
    '/',
    (select system_identifier from pg_control_system()), (select relnamespace from pg_class where oid = {meta}::regclass),
    extract(epoch from pg_postmaster_start_time())
  ))) > 0,
  count(*) filter (where name = {functions}) > 0, count(*) filter (where name = 'moved') > 0
from {schema}.meta
"""
"""A standby has the home of its primary, and changes nothing."""

WHERE = b"""
select quote_ident(%(schema)s), current_user, (select has_schema_privilege(oid, 'create') from pg_namespace where nspname = %(schema)s)
"""
"""The last is null where there is no such schema."""

UNDIGESTED = (
    *("acquire", "begin_anew", "check_claim", "check_command", "claim", "claim_in_session", "cluster", "describe_lease", "get"),
    *("put", "put_in_session", "read_browse", "read_changes", "read_count", "read_fences", "read_length", "read_look", "read_names"),
    *("read_part", "read_read", "read_survey", "refuse_change"),
    *("release", "renew", "settle", "settle_in_session", "unseal", "write"),
)
"""Functions of releases that named theirs without a digest, which have none of that name today."""

OTHERS = b"""
select string_agg(p.oid::regprocedure::text, ', '), count(*)
from pg_proc as p
join pg_namespace as s on s.oid = p.pronamespace
where s.nspname = %s and (p.proname = any (%s) or right(p.proname, 13) = any (%s))
"""

logger: logging.Logger = logging.getLogger(__name__)


def newest() -> int:
    """How many files of `schema/` this code knows."""
    return len(texts_in("schema"))


def functions() -> str:
    """The name in `meta` of the note that this release's functions are installed."""
    return f"functions {digest()}"


class State(NamedTuple):
    """What is there of a schema."""

    expanded: int = 0
    """How many files of `schema/` were applied."""
    at_home: bool = True
    """Whether this run of this server serves it already: see functions/home.sql."""
    has_functions: bool = True
    """Whether this release's functions are there."""

    def is_ready(self) -> bool:
        """Whether this release can work on it at once. A newer one may have added what we need not know."""
        return self.expanded >= newest() and self.at_home and self.has_functions


def state(schema: str) -> Steps[State]:
    """What is there. Raises `SchemaTooNew` where a newer release changed what this code relies on."""
    exists = b"select count(*) from pg_tables where schemaname = %s and tablename = 'meta'"
    (count,) = yield exists, (schema,)
    if not count:
        return State()
    meta = sql.Literal(sql.Identifier(schema, "meta").as_string(None))
    found = sql.SQL(FOUND).format(schema=sql.Identifier(schema), meta=meta, functions=sql.Literal(functions()))
    (needed, expanded, at_home, has_functions, is_moved) = yield found, ()
    if needed > newest():
        raise SchemaTooNew(f"schema {schema!r} has version {needed}, but this version supports {newest()}: upgrade Holdfast")
    # What was moved away stays as it is.
    return State(newest()) if is_moved else State(expanded, at_home, has_functions)


def apply(schema: str) -> Steps[None]:
    """Apply what is missing, inside the open transaction, whose settings stay as they are."""
    if (yield from state(schema)).is_ready():
        return
    # Whoever came first has done it. A pooler in transaction mode keeps no session lock.
    yield b"select pg_advisory_xact_lock(%s)", (LOCK,)
    found = yield from state(schema)
    if found.expanded < newest() or not found.has_functions:
        yield from make(schema, found.expanded)
    if not (yield from state(schema)).at_home:
        (begun,) = yield sql.SQL(own("select {}.begin_here()")).format(sql.Identifier(schema)), ()
        if begun == "restored":
            logger.warning("Schema %r was restored: its numbers continue at the clock; watches may have to start over", schema)


def make(schema: str, expanded: int) -> Steps[None]:
    """Bring the schema to what this release knows, and add its functions; those of other releases stay."""
    before = yield b"select current_setting('search_path'), current_setting('check_function_bodies')", ()
    (path, user, may_create) = yield WHERE, {"schema": schema}
    if may_create is None:
        yield sql.SQL("create schema {}").format(sql.Identifier(schema)), ()
    elif not may_create:
        raise NotAllowed(
            f"schema {schema!r} has no functions of Holdfast {__version__} yet, and user {user!r} may not create them: "
            "open the store once as a user who may, or grant create on the schema"
        )
    # The files name no schema: what they make lies in this one, and its functions find it there whatever the caller's path is.
    yield SETTINGS, (path, "off")
    for text in (*texts_in("schema")[expanded:], *map(own, function_texts())):
        yield text.encode(), ()
    if not expanded:
        yield own("select save_meta('version', %s)").encode(), (str(NEEDED),)
    noted = own("select save_meta('expanded', %s), save_meta(%s, %s || ' ' || now())").encode()
    yield noted, (str(max(expanded, newest())), functions(), __version__)
    yield SETTINGS, before


def prune_functions(schema: str) -> Steps[int]:
    """Remove the functions of other releases, inside the open transaction; how many there were.

    A release that called them without a digest would not install them again: from now on it is refused.
    """
    yield b"select pg_advisory_xact_lock(%s)", (LOCK,)
    meta, ours = sql.Identifier(schema, "meta"), sql.Literal(functions())
    noted = sql.SQL(
        "with gone as (delete from {} where starts_with(name, 'functions') and name <> {} returning name) select array_agg(name) from gone"
    )
    (others,) = yield noted.format(meta, ours), ()
    endings = [f"_{name.removeprefix('functions ')}" for name in others or ()]
    (found, count) = yield OTHERS, (schema, [*names(), *UNDIGESTED], endings)
    if count:
        yield sql.SQL("drop function {}").format(sql.SQL(found)), ()
    raised = sql.SQL("update {} set value = {} where name = 'version' and value::integer < {}")
    yield raised.format(meta, sql.Literal(str(NEEDED)), sql.Literal(NEEDED)), ()
    return int(count)


def check_server() -> Steps[None]:
    """Refuse a server that cannot be a store."""
    number, encoding = yield b"select current_setting('server_version_num')::integer, current_setting('server_encoding')", ()
    if number < OLDEST_SERVER:
        raise StoreError(f"PostgreSQL {number // 10_000} is too old: 14 or newer is needed")
    if encoding != "UTF8":
        raise StoreError(f"the database has the encoding {encoding}, and names and values need UTF8: create one with encoding 'UTF8'")


def refuse_if_missing(connection: Connection[Any], schema: str, where: str) -> None:
    """Refuse a schema that has no store in it, without making one."""
    with connection.cursor() as cursor:
        if carry_out(state(schema), cursor).expanded == 0:
            raise StoreMissing(f"there is no store in schema {schema!r} of {where}: check the URL")


def begin(schema: str) -> Steps[None]:
    """Apply what is missing, in a transaction of our own."""
    # A standby that is away must not keep a store from being opened; one that takes over begins by itself.
    yield b"select set_config('synchronous_commit', 'local', true) where current_setting('synchronous_commit') <> 'off'", ()
    yield from apply(schema)


def begin_here(connection: Connection[Any], schema: str) -> None:
    """Let the store go on above what may have been lost, on a new connection: the server may have been restarted, with other data."""
    with connection.cursor() as cursor:
        found = carry_out(state(schema), cursor)
        if found.expanded and not found.at_home:
            with connection.transaction():
                carry_out(begin(schema), cursor)


def is_behind(connection: Connection[Any], schema: str) -> bool:
    """Whether the schema must be migrated; refuses a server that cannot be a store."""
    with connection.cursor() as cursor:
        carry_out(check_server(), cursor)
        return not carry_out(state(schema), cursor).is_ready()


def migrate(connection: Connection[Any], schema: str) -> None:
    """Bring the schema to this version, in one transaction."""
    with connection.cursor() as cursor, connection.transaction():
        carry_out(begin(schema), cursor)
