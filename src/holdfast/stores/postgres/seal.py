"""The seal of a schema in PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.stores.postgres import schema
from holdfast.stores.postgres.address import parse
from holdfast.stores.postgres.maintenance import MIGRATE_S, administering
from holdfast.stores.postgres.sessions import Session
from holdfast.stores.postgres.statements import in_schema
from holdfast.stores.seals import Sealed, sealed

TABLES = ("names", "messages", "entries", "leases", "events")

SEALED = "select max(value) filter (where name = 'moved'), max(value) filter (where name = 'target_at') from {}.meta"


class PostgresSeal:
    """The seal of one schema."""

    def __init__(self, url: str) -> None:
        self._address = parse(url)
        self.url: str = self._address.url

    def read(self) -> Sealed | None:
        with self._session() as session:
            row = session.execute(in_schema(SEALED, self._address.schema), ()).fetchone()
            return sealed(*(row or (None, None)))

    def remove(self) -> None:
        # Without a function: this release may have none there.
        name = self._address.schema
        with self._session() as session, session.transaction():
            # One caller at a time.
            session.execute(in_schema("lock table {}.meta in exclusive mode", name), ())
            if session.execute(in_schema("delete from {}.meta where name in ('moved', 'target_at')", name), ()).rowcount == 0:
                return
            for table in TABLES:
                session.execute(in_schema(f"alter table {{}}.moved_{table} rename to {table}", name), ())

    @contextmanager
    def _session(self) -> Iterator[Session]:
        with administering(self._address) as session:
            schema.refuse_if_missing(session, self._address.schema, self._address.where)
            session.answer_s = MIGRATE_S
            yield session
