"""The seal of a schema in PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from holdfast.stores.postgres import schema
from holdfast.stores.postgres.address import parse
from holdfast.stores.postgres.failures import not_connected, raised
from holdfast.stores.postgres.statements import in_schema
from holdfast.stores.retrying import Lost
from holdfast.stores.seals import AsyncSeal, Sealed, sealed

TABLES = ("names", "messages", "entries", "leases", "events")

SEALED = "select max(value) filter (where name = 'moved'), max(value) filter (where name = 'target_at') from {}.meta"


class PostgresSeal:
    """The seal of one schema."""

    def __init__(self, url: str) -> None:
        self._address = parse(url)
        self.url: str = self._address.url

    def read(self) -> Sealed | None:
        with self._connection() as connection:
            row = connection.execute(in_schema(SEALED, self._address.schema), ()).fetchone()
            return sealed(*(row or (None, None)))

    def for_tasks(self) -> AsyncSeal:
        return AsyncSeal(self)

    def remove(self) -> None:
        # Without a function: this release may have none there.
        name = self._address.schema
        with self._connection() as connection, connection.transaction():
            # One caller at a time.
            connection.execute(in_schema("lock table {}.meta in exclusive mode", name), ())
            if connection.execute(in_schema("delete from {}.meta where name in ('moved', 'target_at')", name), ()).rowcount == 0:
                return
            for table in TABLES:
                connection.execute(in_schema(f"alter table {{}}.moved_{table} rename to {table}", name), ())

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        try:
            connection = psycopg.connect(self._address.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise not_connected(error, self._address.where) from None
        try:
            with connection:
                schema.refuse_if_missing(connection, self._address.schema, self._address.where)
                yield connection
        except psycopg.Error as error:
            told = raised(error, self._address.where)
            raise (not_connected(error, self._address.where) if isinstance(told, Lost) else told) from error
