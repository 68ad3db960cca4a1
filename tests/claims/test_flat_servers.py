"""A claim costs networked stores as much with two thousand groups as with ten: PostgreSQL by the rows it reads, Redis by its own time."""

import re
from collections.abc import Callable
from typing import Any

import psycopg
import redis
from msgspec import Raw

from holdfast.commands import Claim, Configure, Item, Put, Settle
from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.stores import Store
from holdfast.stores.postgres.on_connection import BorrowedPostgresStore
from holdfast.stores.postgres.store import PostgresStore
from tests.postgres import own_postgres_url
from tests.servers import own_redis_url
from tests.testing import broken_lua, broken_sql

FEW, MANY = 10, 2_000
OPEN = 30
"""So many messages of open groups, of which a claim at a time is measured."""
QUEUES = ("few", "many", "full")

ROWS = "select coalesce(sum(seq_tup_read + idx_tup_fetch), 0) from pg_stat_xact_user_tables where relname in ('lanes', 'messages')"

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


def ratio_on_redis() -> float:
    url = own_redis_url()
    store = connect(url)
    fill(store)
    server = redis.Redis.from_url(re.sub(r"\?.*", "", url).replace("redis+", ""), decode_responses=True)

    def used_us() -> float:
        return float(server.info("commandstats")["cmdstat_evalsha"]["usec"])

    def cost_us(queue: str) -> float:
        before = used_us()
        claim_and_settle(store, queue)
        return used_us() - before

    try:
        # In turns, and the least of many: the server may be stopped for a while in any of them, or slow for some.
        turns = [[cost_us(queue) for queue in QUEUES] for _ in range(OPEN - FEW)]
        least: list[float] = [min(costs) for costs in zip(*turns, strict=True)]
        return max(least[1:]) / least[0]
    finally:
        server.close()
        store.close()


def test_a_claim_reads_no_more_rows_of_postgresql_with_many_groups() -> None:
    assert ratio_on_postgresql(own_postgres_url()) <= 1.5


def test_control_open_groups_found_by_a_filter_are_noticed_on_postgresql() -> None:
    url = own_postgres_url()
    with broken_sql.broken(url, r"and o\.is_open\n", "and o.is_open is not false\n"):
        assert ratio_on_postgresql(url) > 10


def test_a_claim_takes_redis_no_longer_with_many_groups() -> None:
    assert ratio_on_redis() <= 2


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
