"""A PostgreSQL store on a clock that the test owns."""

from typing import Any

import psycopg

from holdfast.stores.postgres.address import parse
from holdfast.stores.postgres.function_names import own
from holdfast.stores.postgres.schema import LOCK
from holdfast.stores.postgres.sessions import SESSION
from holdfast.stores.postgres.statements import in_schema
from holdfast.stores.postgres.store import PostgresStore, open_schema
from holdfast.testing.clock import FakeClock

PINNED = """
create table if not exists test_clock (now_us bigint, wall_offset_us bigint);
delete from test_clock;
create or replace function clock_us() returns bigint language plpgsql volatile
  as 'begin return (select now_us from test_clock); end';
create or replace function wall_offset_us() returns bigint language plpgsql stable
  as 'begin return (select t.wall_offset_us from test_clock as t); end';
"""


class PinnedPostgresStore(PostgresStore):
    """Its functions read the time from a row that follows the clock, in the whole schema: no other store is to use it."""

    def __init__(self, url: str, clock: FakeClock) -> None:
        address = parse(url)
        open_schema(address)
        self._fake = clock
        self._pin: psycopg.Connection[Any] = psycopg.connect(address.conninfo, **SESSION)
        self._set = in_schema("update {}.test_clock set now_us = %s, wall_offset_us = %s", address.schema)
        with self._pin.transaction():
            self._pin.execute("select set_config('search_path', quote_ident(%s), true), pg_advisory_xact_lock(%s)", (address.schema, LOCK))
            self._pin.execute(own(PINNED).encode())
            self._pin.execute("insert into test_clock values (%s, %s)", (clock.now_us(), clock.wall_offset_us()))
        # Before the waiters: whoever they wake looks at the clock.
        self._unsubscribe = clock.subscribe(self._follow)
        super().__init__(url, clock=clock)

    def _follow(self) -> None:
        self._pin.execute(self._set, (self._fake.now_us(), self._fake.wall_offset_us()))

    def close(self) -> None:
        super().close()
        self._unsubscribe()
        self._pin.close()
