"""The least that SQL can do for a queue with leases, tokens and a log on PostgreSQL: what ours is measured against.

A statement a verb, prepared, on our very tables and indexes, with the event row that each of our commands writes.
"""

from typing import Any

import psycopg
from psycopg import sql

from bench.ours import QUEUE, VALUE
from holdfast.ids import new_id
from holdfast.stores.postgres.function_names import texts_in

SCHEMA = "raw"

PUT = """
with clock as materialized (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now),
added as (
  insert into messages (queue, id, position, created_at, value)
  select %(queue)s, i.id, clock.now, clock.now, i.value
  from clock, unnest(%(ids)s::text[], %(values)s::text[]) as i (id, value)
  returning id
)
insert into events (n, at, topic, event, data)
select nextval('numbers'), clock.now, 'queue:' || %(queue)s, 'put', array_to_json(array(select id from added))::text
from clock
"""

CLAIM = """
with clock as materialized (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now),
number as materialized (select nextval('numbers') as n),
head as materialized (
  select m.ctid
  from messages as m
  where m.queue = %(queue)s and m.state = 'ready' and m.position <= (select now from clock)
  order by m.priority desc, m.position, m.n
  limit %(most)s
  for update skip locked
),
leased as (
  update messages as m
  set state = 'leased', attempts = m.attempts + 1, holder = 'bench', token = number.n, since = clock.now, until = clock.now + 60000000
  from clock, number
  where m.ctid = any (array(select ctid from head))
  returning m.id, m.token, m.value
),
event as (
  insert into events (n, at, topic, event, data)
  select number.n, clock.now, 'queue:' || %(queue)s, 'claimed', array_to_json(array(select id from leased))::text
  from clock, number
)
select id, token, value from leased
"""

ACK = """
with clock as materialized (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now),
gone as (
  delete from messages as m
  using clock, unnest(%(ids)s::text[], %(tokens)s::bigint[]) as r (id, token)
  where m.queue = %(queue)s and m.id = r.id and m.token = r.token and m.state = 'leased' and m.until > clock.now
  returning m.id
)
insert into events (n, at, topic, event, data)
select nextval('numbers'), clock.now, 'queue:' || %(queue)s, 'settled', array_to_json(array(select id from gone))::text
from clock
"""


def create(url: str) -> None:
    """Make the tables, as our migrations do."""
    with psycopg.connect(url) as connection:
        connection.execute(sql.SQL("create schema {}").format(sql.Identifier(SCHEMA)))
        connection.execute(f"set local search_path = {SCHEMA}")
        for text in texts_in("schema"):
            connection.execute(text.encode())


class RawQueue:
    """Three statements and the library's own connection."""

    def __init__(self, url: str) -> None:
        # The plans are those for full tables, as ours are.
        settings = (
            f"-c search_path={SCHEMA} -c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off -c jit=off"
        )
        self._connection = psycopg.connect(url, autocommit=True, options=settings)
        self._value = VALUE.decode()

    def put(self, size: int) -> int:
        self._ask(PUT, ids=[new_id() for _ in range(size)], values=[self._value] * size)
        return size

    def cycle(self, size: int) -> int:
        claimed = self._ask(CLAIM, most=size).fetchall()
        if claimed:
            self._ask(ACK, ids=[row[0] for row in claimed], tokens=[row[1] for row in claimed])
        return len(claimed)

    def close(self) -> None:
        self._connection.close()

    def _ask(self, statement: str, **parameters: object) -> "psycopg.Cursor[tuple[Any, ...]]":
        return self._connection.execute(statement.encode(), {"queue": QUEUE, **parameters}, prepare=True)
