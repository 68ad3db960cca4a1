"""Plain queues and locks pay nothing for groups and capacities: their commands ask what they asked before there were any."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from msgspec import Raw

from holdfast.commands import Acquire, Claim, Configure, Item, LeaseName, Move, Put, Release, Settle
from holdfast.connect import connect
from holdfast.stores import Store
from holdfast.stores.lmdb.transaction import LmdbTransaction
from holdfast.stores.memory.transaction import MemoryTransaction
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sqlite.statements import SQL
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.clock import FakeClock
from tests.postgres import own_postgres_url
from tests.servers import own_redis_url
from tests.stores.postgres.test_lane_locks import somebody_waits
from tests.stores_by_name import factory_of
from tests.testing import broken_lua
from tests.testing.broken_sql import broken

Record = Callable[[Callable[[], object]], list[str]]

ASKED_OF_SQLITE = {
    "put": ["begin immediate", "insert into holdfast_messages", "insert into holdfast_events", "commit"],
    "claim": ["begin immediate", "select from holdfast_names", "insert into holdfast_events", "update holdfast_messages", "commit"],
    "settle": ["begin immediate", "delete from holdfast_messages", "insert into holdfast_events", "commit"],
    "lock": ["begin immediate", "select from holdfast_leases", "insert into holdfast_events", "insert into holdfast_leases", "commit"],
    "unlock": ["begin immediate", "select from holdfast_leases", "insert into holdfast_events", "delete from holdfast_leases", "commit"],
}
"""As before there were groups, but for columns: the claim reads `laned` and `throttled_until` of the queue and `extra` of the message,
the put tests `laned`, the settlement `tied`. The lock reads `shared` of the lease."""

ASKED_OF_REDIS = {
    "put": ["evalsha 1", "hmget 2", "hset 1", "mget 2", "pubsub 1", "time 1", "xadd 1", "zadd 1"],
    "claim": ["evalsha 1", "hmget 2", "hset 1", "mget 2", "pubsub 1", "time 1", "xadd 1", "zadd 1", "zlexcount 2", "zrange 1", "zrem 1"],
    "settle": ["evalsha 1", "hdel 1", "hmget 1", "mget 2", "pubsub 1", "time 1", "xadd 1", "zrem 1"],
    "lock": ["evalsha 1", "expire 1", "mget 2", "pubsub 1", "time 1", "xadd 1"],
    "unlock": ["del 1", "evalsha 1", "mget 2", "pubsub 1", "time 1", "xadd 1"],
}
"""But for `set`: what is remembered of the clock is not written each time."""


def acts(store: Store) -> dict[str, Callable[[], object]]:
    def claim() -> None:
        (message,) = store.execute(Claim("jobs", "w", 600.0)).messages
        held.append(message.receipt)

    held: list[Any] = []
    return {
        "put": lambda: store.execute(Put("jobs", [Item("a", Raw(b"1"))])),
        "claim": claim,
        "settle": lambda: store.execute(Settle([held[0]])),
        "lock": lambda: store.execute(Acquire(None, "gpu", "w", "id", 600.0)),
        "unlock": lambda: store.execute(Release([LeaseName(None, "gpu", "id")])),
    }


def recorded(store: Store, record: Record) -> dict[str, list[str]]:
    """What plain commands ask for once the queue is known."""
    for act in acts(store).values():
        act()
    return {name: record(act) for name, act in acts(store).items()}


def statements_of(store: SqliteStore) -> Record:
    def record(act: Callable[[], object]) -> list[str]:
        traced: list[str] = []
        connection = store._writer.connection
        connection.set_trace_callback(traced.append)
        act()
        connection.set_trace_callback(None)
        # What has triggers is traced once more when they have run.
        return [word(text) for place, text in enumerate(traced) if place == 0 or text != traced[place - 1]]

    return record


def word(statement: str) -> str:
    """What a statement does, and to which table first."""
    text = re.sub(r"--[^\n]*\n", "", statement)
    found = re.match(r"\s*(insert into|delete from|update) (\w+)", text)
    if found is not None:
        return f"{found[1]} {found[2]}"
    table = re.search(r"(?:from|join) (holdfast_\w+) as", text)
    return text.strip() if table is None else f"select from {table[1]}"


def test_plain_commands_ask_sqlite_what_they_asked_before(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db", durability="process")
    assert recorded(store, statements_of(store)) == ASKED_OF_SQLITE
    store.close()


def looking_at_groups(store: SqliteStore) -> Callable[[Any], Any]:
    """What executes commands of a store, and looks at a group before each claim."""
    execute: Any = store.execute

    def look_and_execute(command: Any) -> Any:
        if isinstance(command, Claim):
            store._writer.connection.execute(SQL["lane"], ("jobs", ""))
        return execute(command)

    return look_and_execute


def test_control_a_plain_claim_that_asks_more_is_noticed_on_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "store.db", durability="process")
    monkeypatch.setattr(store, "execute", looking_at_groups(store))
    assert recorded(store, statements_of(store)) != ASKED_OF_SQLITE
    store.close()


def calls_of(server: redis.Redis) -> Record:
    def stats() -> dict[str, int]:
        return {name.removeprefix("cmdstat_"): one["calls"] for name, one in server.info("commandstats").items()}

    def record(act: Callable[[], object]) -> list[str]:
        before = stats()
        act()
        used = {name: count - before.get(name, 0) for name, count in stats().items() if name not in ("info", "set")}
        return sorted(f"{name} {count}" for name, count in used.items() if count)

    return record


def asked_of_redis() -> dict[str, list[str]]:
    url = own_redis_url()
    store = connect(url)
    server = redis.Redis.from_url(re.sub(r"\?.*", "", url).replace("redis+", ""), decode_responses=True)
    try:
        return recorded(store, calls_of(server))
    finally:
        server.close()
        store.close()


def test_plain_commands_ask_redis_what_they_asked_before() -> None:
    assert asked_of_redis() == ASKED_OF_REDIS


BEFORE_READY = r"(  local token = [^\n]*\n  if settings)"
AFTER_LEASE = r"(local number, held, ends_at, floor = read_one\(dict, key\)\n)"


@pytest.mark.parametrize(
    ("act", "find", "instead", "more"),
    [
        ("claim", BEFORE_READY, r"  call('EXISTS', KEYS[2] .. ':open')\n\1", "exists 1"),
        ("lock", AFTER_LEASE, r"\1  call('EXISTS', KEYS[2] .. ':shares')\n", "exists 1"),
    ],
)
def test_control_a_plain_command_that_asks_more_is_noticed_on_redis(act: str, find: str, instead: str, more: str) -> None:
    with broken_lua.broken(find, instead):
        assert asked_of_redis()[act] == sorted([*ASKED_OF_REDIS[act], more])


def serve(store: Store) -> None:
    for act in acts(store).values():
        act()
    store.execute(Put("jobs", [Item(f"m{number}", Raw(b"1")) for number in range(10)]))
    messages = store.execute(Claim("jobs", "w", 600.0, 10)).messages
    assert len(messages) == 10
    store.execute(Settle([message.receipt for message in messages[:5]]))
    store.execute(Settle([message.receipt for message in messages[5:]], "ready"))


def asks_for(url: str, table: str) -> bool:
    """Whether somebody who serves a plain queue and holds a lock waits for who has the table for itself."""
    store = PostgresStore(url)
    serve(store)  # A new session opens the table once, to know the type of its rows.
    assert store.execute(Move("jobs", "gone", state="ready")).ids
    with psycopg.connect(store.address.conninfo) as owner, psycopg.connect(store.address.conninfo, autocommit=True) as watch:
        owner.execute("select set_config('search_path', quote_ident(%s), true)", (store.address.schema,))
        owner.execute(f"lock table {table} in access exclusive mode".encode())
        with ThreadPoolExecutor(1) as pool:
            serving = pool.submit(serve, store)
            waits = somebody_waits(watch, serving.done)
            owner.rollback()
            serving.result(60)
    store.close()
    return waits


@pytest.mark.parametrize("table", ["lanes", "shares"])
def test_nothing_reads_the_tables_of_groups_and_shares_for_plain_queues_and_locks_on_postgresql(table: str) -> None:
    assert not asks_for(own_postgres_url(), table)


def test_control_a_plain_claim_that_looks_at_groups_is_noticed_on_postgresql() -> None:
    url = own_postgres_url()
    with broken(url, r"(?s)(function fast_claim\w*\(.*?\nbegin\n)", r"\1  perform from lanes where queue = of_queue;\n"):
        assert asks_for(url, "lanes")


def test_control_a_plain_lock_that_looks_at_shares_is_noticed_on_postgresql() -> None:
    url = own_postgres_url()
    with broken(url, r"(?s)(function fast_acquire\w*\(.*?\nbegin\n)", r"\1  perform from shares where key = of_key;\n"):
        assert asks_for(url, "shares")


def without_lanes_on_sqlite(store: SqliteStore) -> None:
    store._writer.connection.execute("alter table holdfast_lanes rename to gone")
    serve(store)


def test_sqlite_serves_plain_queues_without_the_table_of_groups(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db", durability="process")
    store.execute(Configure("queue", "jobs"))
    without_lanes_on_sqlite(store)
    store.close()


def test_control_a_plain_claim_that_looks_at_groups_fails_without_their_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "store.db", durability="process")
    store.execute(Configure("queue", "jobs"))
    monkeypatch.setattr(store, "execute", looking_at_groups(store))
    with pytest.raises(sqlite3.OperationalError, match="no such table: holdfast_lanes"):
        without_lanes_on_sqlite(store)
    store.close()


@pytest.fixture(params=["memory", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = factory_of(request.param, tmp_path).make(FakeClock())
    yield made
    made.close()


def refuse_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a transaction refuses to look at a group or to write one."""

    def refused(*_: Any) -> Any:
        raise AssertionError("it looks at groups")

    for name in ("lanes", "find_lanes", "open_lanes", "lane_heads", "save_lanes"):
        for owner in (MemoryTransaction, LmdbTransaction):
            monkeypatch.setattr(owner, name, refused)


def test_nothing_looks_at_groups_for_plain_queues_in_memory_and_lmdb(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    refuse_groups(monkeypatch)
    serve(store)


def test_control_a_queue_with_groups_looks_at_them_in_memory_and_lmdb(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    store.execute(Configure("queue", "jobs", groups="fair"))
    refuse_groups(monkeypatch)
    with pytest.raises(AssertionError, match="it looks at groups"):
        serve(store)
