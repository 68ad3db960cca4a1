"""Where the jobs of a backend are, and how commands get there: on Django's own connection, or to a store apart."""

import sqlite3
import threading
import weakref
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from django.db import connections, transaction
from django.utils.connection import ConnectionDoesNotExist

from holdfast.client import ControlPlaneClient
from holdfast.commands import Command
from holdfast.commands.topics import queue_topic
from holdfast.connect import connect
from holdfast.errors import StoreError
from holdfast.integrations.django.compat import InvalidTaskBackend
from holdfast.stores import Executor
from holdfast.stores.caller_transaction import Connection

R = TypeVar("R")

NAMES = {"dbname": "dbname", "user": "user", "password": "password", "host": "host", "port": "port"}

# Guards _borrowed.
_lock = threading.Lock()
_borrowed: "weakref.WeakKeyDictionary[Any, tuple[Any, ControlPlaneClient]]" = weakref.WeakKeyDictionary()
"""The driver's connection that each of Django's has, and the client on it."""


class OwnStore:
    """A store apart from Django's databases."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def client(self) -> ControlPlaneClient:
        """What a worker uses, and who reads."""
        return shared_client(self.url)

    @property
    def near(self) -> ControlPlaneClient:
        """The client of this thread, in whose transaction a test runs."""
        return self.client

    def on(self, connection: Connection) -> Executor:
        """What executes commands in the transaction of a connection of the caller's to the same database."""
        return self.client.store_on(connection)

    def execute(self, command: Command[R]) -> R:
        return self.client.store.execute(command)

    def wake(self, queue: str) -> None:
        """Nothing: the store wakes who waits."""


class DatabaseStore:
    """A store in a database of Django's: every command runs on the connection of this thread, so it is part of its transaction."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    @property
    def wrapper(self) -> Any:
        """Django's connection of this thread."""
        try:
            return connections[self.alias]
        except ConnectionDoesNotExist as error:
            raise InvalidTaskBackend(f"url='database:{self.alias}': there is no such database in DATABASES") from error

    @property
    def client(self) -> ControlPlaneClient:
        """What a worker uses: connections of its own to the same database."""
        return shared_client(url_of(self.wrapper))

    @property
    def near(self) -> ControlPlaneClient:
        """A client on the connection of this thread."""
        wrapper = self.wrapper
        wrapper.ensure_connection()
        with _lock:
            driver, client = _borrowed.get(wrapper, (None, None))
        if client is not None and driver is wrapper.connection:
            return client
        if client is not None:
            client.close()  # Django has connected anew.
        client = ControlPlaneClient.on(connect(wrapper.connection))
        with _lock:
            _borrowed[wrapper] = (wrapper.connection, client)
        weakref.finalize(wrapper, client.close)
        return client

    def on(self, connection: Connection) -> Executor:
        """What executes commands in the transaction of a connection to the same database.

        On SQLite never by way of another connection: opening one waits for the transaction that is open here.
        """
        wrapper = self.wrapper
        if wrapper.vendor == "sqlite":
            wrapper.validate_no_broken_transaction()
            return self.near.store_on(connection)
        return self.client.store_on(connection)

    def execute(self, command: Command[R]) -> R:
        """Execute it on the connection of this thread."""
        return self.on(self.wrapper).execute(command)

    def wake(self, queue: str) -> None:
        """Let workers look at the queue once this transaction is committed; PostgreSQL tells them itself."""
        if self.wrapper.vendor == "sqlite":
            transaction.on_commit(lambda: self._hint(queue), using=self.alias, robust=True)

    def _hint(self, queue: str) -> None:
        self.near.store.hint_committed(queue_topic(queue))


def place_for(url: str, database: str | None) -> OwnStore | DatabaseStore:
    """The place that a backend's URL names."""
    return OwnStore(url) if database is None else DatabaseStore(database)


@cache
def shared_client(url: str) -> ControlPlaneClient:
    """One client per store and process."""
    return ControlPlaneClient(url)


def url_of(wrapper: Any) -> str:
    """The store's URL of a database of Django's, for other connections to it."""
    if wrapper.vendor == "sqlite":
        wrapper.ensure_connection()
        path = _path_of(wrapper.connection)
        if not path:
            raise StoreError(f"the database {wrapper.alias!r} is in memory, where no other connection finds it: use a file")
        return f"sqlite:///{quote(path)}"
    if wrapper.vendor == "postgresql":
        given = wrapper.get_connection_params()
        found = {name: str(given[name]) for name in NAMES if given.get(name)}
        user = quote(found.pop("user", ""), safe="")
        password = f":{quote(found.pop('password'), safe='')}" if "password" in found else ""
        database = quote(found.pop("dbname", ""), safe="")
        extra = {name: str(given[name]) for name in given if name.startswith("ssl") or name == "service"}
        return f"postgresql://{user}{password}{'@' if user else ''}/{database}?{urlencode(found | extra, quote_via=quote)}"
    raise InvalidTaskBackend(
        f"url='database:{wrapper.alias}' is {wrapper.display_name}: jobs commit with rows on SQLite and PostgreSQL only; "
        "give the URL of another store, and outside='on_commit'"
    )


def _path_of(connection: sqlite3.Connection) -> str:
    return str(connection.execute("pragma database_list").fetchone()[2])
