"""A claim costs networked stores as much with two thousand groups as with ten: by rows of PostgreSQL and words of Redis."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg
import redis
from msgspec import Raw

from holdfast.commands import Claim, Configure, Item, Put, Settle
from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.stores import Store
from holdfast.stores.postgres.on_connection import BorrowedPostgresStore
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.redis import scripts
from tests.postgres import own_postgres_url
from tests.servers import own_redis_url
from tests.testing import broken_lua, broken_sql

FEW, MANY = 10, 2_000
OPEN = 30
"""So many messages of open groups, of which a claim at a time is measured."""
QUEUES = ("few", "many", "full")

ROWS = "select coalesce(sum(seq_tup_read + idx_tup_fetch), 0) from pg_stat_xact_user_tables where relname in ('lanes', 'messages')"

COUNTED = """local function call(...)
  local answer = redis.call(...)
  redis.call("INCRBY", "counted", select("#", ...) + (type(answer) == "table" and #answer or 1))
  return answer
end
"""
"""Counts what the scripts tell Redis and what it says to them: the words of each call, and the elements of its answer."""

Measure = Callable[[str], float]
"""What a claim and its settlement cost in the queue of this name."""


def fill(store: Store) -> None:
    """Queues of few and of many groups, and one where many full ones are before the first that is open."""
    for queue, groups in (("few", FEW), ("many", MANY), ("full", MANY)):
        store.execute(Configure("queue", queue, groups="fair", group_limit=1))
        store.execute(Put(queue, [Item(new_id(), Raw(b"1"), group=f"g{number % groups}") for number in range(max(OPEN, groups))]))
    store.execute(Put("full", [Item(new_id(), Raw(b"1"), group=f"g{number}") for number in range(MANY)]))
    assert len(store.execute(Claim("full", "w", 600.0, MANY)).messages) == MANY
    store.execute(Put("full", [Item(new_id(), Raw(b"1"), group=f"open{number % FEW}") for number in range(OPEN)]))


def claim_and_settle(store: Any, queue: str) -> None:
    (message,) = store.execute(Claim(queue, "w", 600.0)).messages
    store.execute(Settle([message.receipt]))


def ratio(measure: Measure) -> float:
    """The cost with many groups, or with full ones, beside that with few."""
    few, *others = (measure(queue) for queue in QUEUES)
    return max(others) / few


def ratio_on_postgresql(url: str) -> float:
    store = PostgresStore(url)
    fill(store)
    with psycopg.connect(store.address.conninfo) as connection:
        connection.execute("set enable_seqscan = off")  # The tables are small.
        connection.commit()
        mine = BorrowedPostgresStore(connection, name=store.address.schema)

        def rows_read(queue: str) -> float:
            claim_and_settle(mine, queue)
            before = connection.execute(ROWS).fetchone()
            claim_and_settle(mine, queue)
            after = connection.execute(ROWS).fetchone()
            connection.rollback()
            assert before is not None
            assert after is not None
            return float(after[0] - before[0])

        found = ratio(rows_read)
    store.close()
    return found


@contextmanager
def counted_calls() -> Iterator[None]:
    """Scripts that count what they tell Redis while the block runs."""
    whole = scripts._read

    def read(name: str) -> str:
        return whole(name).replace("local call = redis.call\n", COUNTED)

    scripts.script.cache_clear()
    with patch.object(scripts, "_read", read):
        yield
    scripts.script.cache_clear()


def ratio_on_redis() -> float:
    url = own_redis_url()
    store = connect(url)
    server = redis.Redis.from_url(re.sub(r"\?.*", "", url).replace("redis+", ""), decode_responses=True)

    def words(queue: str) -> float:
        server.set("counted", 0)
        claim_and_settle(store, queue)
        return float(server.get("counted") or 0)

    try:
        fill(store)
        with counted_calls():
            assert words("few") > 0
            # The least of some: now and then a step tidies up a little.
            return ratio(lambda queue: min(words(queue) for _ in range(5)))
    finally:
        server.close()
        store.close()


def test_a_claim_reads_no_more_rows_of_postgresql_with_many_groups() -> None:
    assert ratio_on_postgresql(own_postgres_url()) <= 1.5


def test_control_open_groups_found_by_a_filter_are_noticed_on_postgresql() -> None:
    url = own_postgres_url()
    with broken_sql.broken(url, r"and o\.is_open\n", "and o.is_open is not false\n"):
        assert ratio_on_postgresql(url) > 10


def test_a_claim_tells_redis_no_more_with_many_groups() -> None:
    assert ratio_on_redis() <= 1.5


def test_control_open_groups_found_by_a_filter_are_noticed_on_redis() -> None:
    filtered = """local names = {}
  for _, name in ipairs(call("HKEYS", queue .. ":lane")) do
    names[#names + 1] = lanes.read(name, call("HGET", queue .. ":lane", name)).was.open_at or nil
  end
  table.sort(names)
  names = { unpack(names, 1, math.min(limit, #names)) }
"""
    with broken_lua.broken(r'local names = call\("ZRANGE", queue \.\. ":open"[^\n]*\n', filtered):
        assert ratio_on_redis() > 10
