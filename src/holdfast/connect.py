"""Opens a store by URL.

Importing this must cost next to nothing: what only an open store needs is imported when one is opened.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from holdfast.codec.limits import Limits
from holdfast.errors import Closed, MissingExtra, StoreMissing

if TYPE_CHECKING:
    import sqlite3

    import psycopg

    from holdfast.stores import AsyncStore, Executor, Store
    from holdfast.stores.condition import Condition
    from holdfast.stores.files.backups import Backups
    from holdfast.stores.seals import Seal

POSTGRES = ("postgresql", "postgres")
REDIS = ("redis", "rediss", "redis+unix", "valkey", "valkeys", "valkey+unix")

STORES = {
    "memory": ("holdfast.stores.memory", "MemoryStore"),
    "sqlite": ("holdfast.stores.sqlite.store", "SqliteStore"),
    "lmdb": ("holdfast.stores.lmdb", "LmdbStore"),
    "http": ("holdfast.stores.http.store", "HttpStore"),
    "https": ("holdfast.stores.http.store", "HttpStore"),
    **dict.fromkeys(POSTGRES, ("holdfast.stores.postgres.store", "PostgresStore")),
    **dict.fromkeys(REDIS, ("holdfast.stores.redis", "RedisStore")),
}
SEALS = {
    "sqlite": ("holdfast.stores.sqlite.seal", "SqliteSeal"),
    "lmdb": ("holdfast.stores.lmdb.seal", "LmdbSeal"),
    **dict.fromkeys(POSTGRES, ("holdfast.stores.postgres.seal", "PostgresSeal")),
    **dict.fromkeys(REDIS, ("holdfast.stores.redis.seal", "RedisSeal")),
}
"""Stores whose seal can be taken off again."""

BACKUPS = {
    "sqlite": ("holdfast.stores.sqlite.backups", "SqliteBackups"),
    "lmdb": ("holdfast.stores.lmdb.backups", "LmdbBackups"),
}
"""Stores whose files Holdfast itself copies and puts back."""

CONDITIONS = {
    "sqlite": ("holdfast.stores.sqlite.condition", "sqlite_condition"),
    "lmdb": ("holdfast.stores.lmdb.condition", "lmdb_condition"),
    **dict.fromkeys(POSTGRES, ("holdfast.stores.postgres.condition", "postgres_condition")),
    **dict.fromkeys(REDIS, ("holdfast.stores.redis.condition", "redis_condition")),
    **dict.fromkeys(("http", "https"), ("holdfast.stores.http.condition", "http_condition")),
}
"""How the condition of a store is found."""

EXTRAS = {"lmdb": "lmdb", "http": "http", "https": "http", **dict.fromkeys(POSTGRES, "postgres"), **dict.fromkeys(REDIS, "redis")}
"""Stores that need what the base install leaves out, and the extra that brings it."""

SERVERS = {"http", "https"}
"""What names a server of ours, not a file."""

DATABASES = {*POSTGRES, *REDIS}
"""What names a database server; its store reads the URL itself."""

OPTIONS: dict[str, dict[str, dict[str, object]]] = {
    "memory": {"values": {"copy": False, "reference": True}, "events": {"keep": True, "none": False}},
    "sqlite": {"durability": {"power": "power", "process": "process"}},
    "lmdb": {"durability": {"power": "power", "process": "process"}},
}
"""What may stand behind the question mark of a URL, and what it means."""

NAMES = {"values": "by_reference", "events": "keeps_events"}

# Guards _named and _has_told.
_lock = threading.Lock()
_named: "dict[str, Store]" = {}
_has_told = False


def connect(
    target: "str | sqlite3.Connection | psycopg.Connection[Any] | None" = None,
    *,
    token: str | None = None,
    limits: Limits = Limits(),
    create: bool = True,
) -> "Store":
    """Open a store: `memory://`, `sqlite:///jobs.db`, `lmdb:///jobs`, `postgresql://host/database`, `redis://host/0`, `https://host`.

    As with other libraries, three slashes begin a relative path and four an absolute one. Without a URL it is that of `HOLDFAST_URL`, else
    a SQLite file in the user's data folder. `memory://` is a new store each time, `memory://name` one for the whole process. A `sqlite3` or
    psycopg connection of your own works too: in its open transaction commands never commit, and an idle one they commit. `token` is for a
    server, and without it that of `HOLDFAST_TOKEN`. With `create=False` a store that does not exist yet raises `StoreMissing`.
    """
    if not isinstance(target, str | None):
        if not create:
            raise ValueError("create=False needs a URL: on your own connection, check for the tables yourself")
        return _borrow(target, limits)
    if target is None:
        return _connect_default(token, limits, create=create)
    url = _split(target)
    if url.scheme in SERVERS:
        return _class_of(*STORES[url.scheme], url.scheme)(target, token=token, limits=limits)
    if url.scheme in DATABASES:
        return _class_of(*STORES[url.scheme], url.scheme)(target, limits=limits, create=create)
    options = _options_of(url)
    if url.scheme != "memory":
        return _class_of(*STORES[url.scheme], url.scheme)(_path_of(url), limits=limits, create=create, **options)
    if not create and target not in _named:
        raise StoreMissing(
            f"there is no store {target} in this process, and the memory of another process cannot be opened: use a file or a server"
        )
    if not url.netloc:
        return _class_of(*STORES["memory"], "memory")(limits=limits, **options)
    return _shared_memory(target, limits, options)


def _borrow(connection: object, limits: Limits) -> "Store":
    """A store on a connection of the caller's own."""
    if any(base.__module__.partition(".")[0] == "psycopg" for base in type(connection).__mro__):
        return _class_of("holdfast.stores.postgres.on_connection", "BorrowedPostgresStore", "postgres")(connection, limits=limits)
    return _class_of("holdfast.stores.sqlite.on_connection", "BorrowedStore", "sqlite")(connection, limits=limits)


def connect_shared(target: str | None = None, *, token: str | None = None, limits: Limits = Limits(), create: bool = True) -> "Store":
    """Open a store as `HOLDFAST_URL` or a `base_url` names it: every `memory://` there is the same store of this process."""
    if target is not None and create and is_private(target):
        return _shared_memory(target, limits, _options_of(_split(target)))
    return connect(target, token=token, limits=limits, create=create)


def is_server(url: str) -> bool:
    """Whether the URL names a server of ours, through which others may reach the same store."""
    return urlsplit(url).scheme in SERVERS


def file_of(target: str | None) -> Path | None:
    """The file or folder that a store is in, without opening it; None for a store elsewhere. Without a URL, that of `connect`."""
    target = os.environ.get("HOLDFAST_URL") if target is None else target
    if target is None:
        return _default_path(create=False)
    url = _split(target)
    return None if url.scheme in SERVERS | DATABASES or url.scheme == "memory" else _path_of(url)


def before_opening(target: str | None, connection: object, limits: Limits) -> "Executor | None":
    """What executes commands in the open transaction of a `sqlite3` connection to the file of a store that is not open yet; else None.

    Opening the store would wait until that transaction ends.
    """
    if not any(base.__module__ == "sqlite3" for base in type(connection).__mro__):
        return None
    path = file_of(target)
    if path is None or (target or os.environ.get("HOLDFAST_URL") or "sqlite:").partition(":")[0] != "sqlite":
        return None
    from holdfast.stores.sqlite.before_opening import transaction_on  # noqa: PLC0415 - see the top

    return transaction_on(connection, path, limits)


def is_private(url: str) -> bool:
    """Whether the URL names no store in particular: each `memory://` is one of its own, and gone with its last user."""
    return url.partition("?")[0] == "memory://"


def connect_async(
    target: "str | psycopg.AsyncConnection[Any] | None" = None,
    *,
    token: str | None = None,
    limits: Limits = Limits(),
    create: bool = True,
) -> "AsyncStore":
    """Open a store for tasks; see `connect`. A psycopg connection of your own is one for tasks, too."""
    if not isinstance(target, str | None):
        made_by: Callable[..., Any] = _class_of("holdfast.stores.postgres.on_connection", "AsyncBorrowedPostgresStore", "postgres")
        store: AsyncStore = made_by(target, limits=limits)
        return store
    return connect(target, token=token, limits=limits, create=create).for_tasks()


def seal_of(target: str) -> "Seal":
    """The seal of the store at a URL, whether it is sealed or not. ValueError for a store whose seal cannot be taken off."""
    url = _split(target)
    if url.scheme not in SEALS:
        where = "on the store that the server serves" if url.scheme in SERVERS else "on a store that outlives its process"
        raise ValueError(f"the seal of a store at {url.scheme}:// cannot be removed: do it {where}")
    made_by: Callable[[Any], Seal] = _class_of(*SEALS[url.scheme], url.scheme)  # type: ignore[assignment]
    return made_by(target if url.scheme in DATABASES else _path_of(url))


def condition_of(target: str | None) -> "Condition | None":
    """The condition of the store, or of the server, at a URL; without one, of that of `connect`. None for a store in memory."""
    target = _url_of(target)
    url = _split(target)
    if url.scheme not in CONDITIONS:
        return None
    found_by: Callable[[Any], Condition] = _class_of(*CONDITIONS[url.scheme], url.scheme)  # type: ignore[assignment]
    return found_by(target if url.scheme in DATABASES | SERVERS else _path_of(url))


def _url_of(target: str | None) -> str:
    return target or os.environ.get("HOLDFAST_URL") or f"sqlite:///{quote(str(_default_path(create=False)))}"


def backups_of(target: str | None) -> "Backups":
    """The backups of the store at a URL; without one, of that of `connect`. ValueError for a store that is not a file."""
    url = _split(_url_of(target))
    if url.scheme not in BACKUPS:
        how = "on the machine that has the store" if url.scheme in SERVERS else "with the tools of the database, or use `holdfast export`"
        raise ValueError(f"a store at {url.scheme}:// is not a file: back it up and restore it {how}")
    made_by: Callable[[Path], Backups] = _class_of(*BACKUPS[url.scheme], url.scheme)  # type: ignore[assignment]
    return made_by(_path_of(url))


async def open_async(
    target: str | None = None, *, token: str | None = None, limits: Limits = Limits(), create: bool = True
) -> "AsyncStore":
    """Open a store as `connect_async` does, in a thread: no event loop waits for a server that does not answer."""
    from holdfast.process.open_once import Opener  # noqa: PLC0415 - see the top
    from holdfast.stores.opened_late import opened  # noqa: PLC0415 - as above

    opener = Opener(lambda: connect(target, token=token, limits=limits, create=create))
    try:
        return await opened(opener)
    except BaseException:
        opener.close()  # Cancelled: what is opened later is closed.
        raise


@contextmanager
def shared_as(url: str, store: "Store") -> Iterator[None]:
    """While the block runs, opening this URL in the process gives the store."""
    with _lock:
        _named[url] = store
    try:
        yield
    finally:
        with _lock:
            del _named[url]


def _connect_default(token: str | None, limits: Limits, *, create: bool) -> "Store":
    url = os.environ.get("HOLDFAST_URL")
    if url is None:
        path = _default_path(create=create)
        _tell_once(path)
        return connect(f"sqlite:///{quote(str(path))}", limits=limits, create=create)
    return connect_shared(url, token=token, limits=limits, create=create)


def _default_path(*, create: bool) -> Path:
    from platformdirs import user_data_path  # noqa: PLC0415 - see the top

    return user_data_path("holdfast", ensure_exists=create) / "holdfast.sqlite3"


def _tell_once(path: Path) -> None:
    global _has_told  # noqa: PLW0603 - once a process
    with _lock:
        if not _has_told:
            _has_told = True
            import logging  # noqa: PLC0415 - see the top

            logging.getLogger("holdfast").info("no URL was given and HOLDFAST_URL is not set: using %s", path)


def _shared_memory(name: str, limits: Limits, options: dict[str, object]) -> "Store":
    with _lock:
        if name not in _named or _is_closed(_named[name]):
            _named[name] = _class_of(*STORES["memory"], "memory")(limits=limits, url=name, **options)
        return _named[name]


def _is_closed(store: "Store") -> bool:
    from holdfast.commands import Names  # noqa: PLC0415 - see the top

    try:
        store.execute(Names("queue", limit=1))
    except Closed:
        return True
    return False


def _split(text: str) -> SplitResult:
    # Only the scheme is shown: the rest may hold a password, and what urlsplit says about it too.
    scheme, mark, _ = text.partition("://")
    if not mark or scheme not in STORES:
        is_scheme = mark and scheme.replace("+", "").isalnum()
        problem = f"unknown store URL scheme '{scheme}://'" if is_scheme else "a store URL begins with its scheme"
        from difflib import get_close_matches  # noqa: PLC0415 - see the top

        close = get_close_matches(scheme, STORES, 1) if is_scheme else []
        hint = f"did you mean {close[0]}://? " if close else ""
        raise ValueError(f"{problem}; {hint}supported: {', '.join(f'{known}://' for known in STORES)}")
    try:
        return urlsplit(text)
    except ValueError:
        raise ValueError(f"{scheme}://… is not a valid store URL; use for example sqlite:///file, memory:// or https://host") from None


def _path_of(url: SplitResult) -> Path:
    path = unquote(url.path.removeprefix("/"))
    if url.netloc or url.fragment or not path or path == ":memory:" or "\0" in path:
        message = (
            f"{url.scheme}://… has no path: write {url.scheme}:///relative/path or {url.scheme}:////absolute/path, "
            "with %23 for # and %3F for ? (or memory://)"
        )
        raise ValueError(message)
    return Path(path).absolute()


def _options_of(url: SplitResult) -> dict[str, object]:
    options = {}
    for name, value in parse_qsl(url.query, keep_blank_values=True):
        allowed = OPTIONS[url.scheme].get(name, {})
        if value not in allowed:
            known = "; ".join(f"{option}={'|'.join(values)}" for option, values in OPTIONS[url.scheme].items())
            shown = f"{name}={value}" if allowed else name
            message = f"unknown option {shown} in a {url.scheme}:// URL; supported: {known}"
            raise ValueError(message)
        options[NAMES.get(name, name)] = allowed[value]
    return options


@cache
def _class_of(module: str, name: str, scheme: str) -> "Callable[..., Store]":
    try:
        made_by: Callable[..., Store] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if scheme not in EXTRAS:
            raise
        message = f"{scheme}:// needs the package {error.name!r}: pip install 'holdfast[{EXTRAS[scheme]}]'"
        raise MissingExtra(message) from error
    return made_by
