"""From a connection or session of a toolkit to the connection of the database driver beneath it.

Toolkits are recognised by the modules of their classes, so that none has to be installed. A toolkit that begins transactions begins one
here as it would for a statement of the caller's own: else its commit would not know of ours.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from holdfast.stores.caller_transaction import AsyncConnection, Connection

SESSIONS: Final = ("Session", "scoped_session")
ASYNC_SESSIONS: Final = ("AsyncSession", "async_scoped_session")

NO_MYSQL: Final = (
    "Holdfast has no store in MySQL, so no job commits with your rows there: put the job after your commit, without connection="
)
ASYNC_ONLY: Final = "it belongs to async code: use .aio there, as in `await queue.aio.put(…, connection=…)`"

REMEDIES: Final[dict[str, str]] = {
    "aiosqlite": "its thread is not yours: give a sqlite3 connection, or use PostgreSQL with asyncpg or psycopg",
    "psycopg2": "Holdfast uses psycopg 3: install psycopg; the URLs of SQLAlchemy for it begin with postgresql+psycopg://",
    "pg8000": "Holdfast uses psycopg 3: install psycopg; the URLs of SQLAlchemy for it begin with postgresql+psycopg://",
} | dict.fromkeys(("MySQLdb", "aiomysql", "asyncmy", "mariadb", "mysql", "pymysql"), NO_MYSQL)
"""What to do instead, by the package of a driver that cannot be used."""


def driver_connection(connection: "Connection") -> Any:
    """The driver's connection beneath what the caller gave, for threads."""
    given: Any = connection
    match toolkit_of(given):
        case "sqlalchemy":
            given = _of_sqlalchemy(given)
        case "django":
            given = _of_django(given)
    refuse_unusable(given)
    return given


async def async_driver_connection(connection: "AsyncConnection") -> Any:
    """The driver's connection beneath what the caller gave, for tasks. One of `sqlite3` may come by way of threads' toolkits."""
    given: Any = connection
    if toolkit_of(given) != "sqlalchemy":
        return driver_connection(given)
    if _is_named(given, *ASYNC_SESSIONS):
        given = await given.connection()
    if not _is_named(given, "AsyncConnection"):
        return driver_connection(given)
    if not given.in_transaction():
        await given.begin()
    driver = (await given.get_raw_connection()).driver_connection
    if toolkit_of(driver) == "asyncpg" and not driver.is_in_transaction():
        # SQLAlchemy begins the transaction of an asyncpg connection with its first statement, which ours is not.
        await given.exec_driver_sql("select 1")
    refuse_unusable(driver)
    return driver


def toolkit_of(connection: Any) -> str:
    """The package of the connection's class; for a class that derives from a toolkit's, the toolkit."""
    packages = [each.__module__.partition(".")[0] for each in type(connection).__mro__]
    return next((package for package in packages if package in ("sqlalchemy", "django", "asyncpg")), packages[0])


def name_of(connection: Any) -> str:
    """The full name of the connection's class, for messages."""
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def refuse_unusable(connection: Any) -> None:
    """Raise what says what to do instead, for a driver that no store can use."""
    remedy = REMEDIES.get(toolkit_of(connection))
    if remedy is not None:
        raise TypeError(f"connection= cannot be a {name_of(connection)}: {remedy}")


def _of_sqlalchemy(given: Any) -> Any:
    if _is_named(given, *ASYNC_SESSIONS, "AsyncConnection"):
        raise TypeError(f"connection= cannot be a {name_of(given)} here: {ASYNC_ONLY}")
    if _is_named(given, *SESSIONS):
        given = given.connection()
    if _is_named(given, "Connection"):
        if not given.in_transaction():
            given.begin()
        given = given.connection
    if not _is_named(given, "PoolProxiedConnection"):
        raise TypeError(f"connection= cannot be a {name_of(given)}: give the Session or the Connection whose transaction it is")
    driver = given.driver_connection
    if toolkit_of(driver) == "asyncpg":
        raise TypeError(f"connection= cannot be a {name_of(driver)} here: {ASYNC_ONLY}")
    return driver


def _of_django(wrapper: Any) -> Any:
    if wrapper.vendor == "mysql":
        raise TypeError(f"connection= cannot be the Django connection {wrapper.alias!r}: {NO_MYSQL}")
    wrapper.validate_thread_sharing()
    wrapper.validate_no_broken_transaction()
    wrapper.ensure_connection()
    return wrapper.connection


def _is_named(given: Any, *names: str) -> bool:
    return any(each.__name__ in names for each in type(given).__mro__)
