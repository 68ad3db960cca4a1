"""The floor: the fewest statements that do the job, on a table with the features, indexes, pages and settings of ours.

It writes no events and never looks for leases that have ended, so it is a little lower than any queue can stand.
"""

import sqlite3
import time
from pathlib import Path

from bench.measure import Rates, rates_of
from bench.ours import BATCH, LEASE_S, QUEUE, VALUE, Durability
from holdfast.ids import new_id

SCHEMA = """
create table messages (
  n integer primary key,
  queue text not null,
  id text not null,
  state text not null,
  priority integer not null,
  position integer not null,
  lease_end integer,
  key text,
  attempts integer not null,
  failures integer not null,
  holder text not null,
  token integer not null,
  max_attempts integer,
  dead_letter text,
  created_at integer not null,
  last_error text,
  value blob
);
create unique index messages_id on messages (queue, id);
create index messages_ready on messages (queue, priority desc, position) where state = 'ready';
create index messages_lease_end on messages (queue, lease_end) where lease_end is not null;
create table entries (
  n integer primary key,
  dict text not null,
  key text not null,
  revision integer not null,
  value blob
);
create unique index entries_key on entries (dict, key);
"""

PUT = """
insert into messages (queue, id, state, priority, position, attempts, failures, holder, token, created_at, value)
values (?, ?, 'ready', 0, ?, 0, 0, '', 0, ?, ?)
"""

CLAIM = """
update messages
set state = 'leased', attempts = attempts + 1, token = token + 1, holder = ?, lease_end = ?
where n in (
  select n
  from messages
  where queue = ? and state = 'ready' and position <= ?
  order by priority desc, position
  limit ?
)
returning queue, id, token, attempts, value
"""

CLAIM_ONE = CLAIM.replace("n in (", "n = (").replace("limit ?", "limit 1")

ACK = """
delete from messages
where queue = ? and id = ? and token = ?
"""

SWAP = """
update entries
set value = ?, revision = revision + 1
where dict = ? and key = ? and value = ?
"""


class RawQueue:
    """A queue of bare statements; a lone statement is its own transaction."""

    def __init__(self, path: Path, durability: Durability = "process") -> None:
        is_new = not path.exists()
        self.sql = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        for setting in ("page_size = 2048", "journal_mode = wal", "wal_autocheckpoint = 10000"):
            self.sql.execute(f"pragma {setting}")
        self.sql.execute(f"pragma synchronous = {'full' if durability == 'power' else 'normal'}")
        if is_new:
            self.sql.executescript(SCHEMA)

    def put(self) -> None:
        self.sql.execute(PUT, row())

    def cycle(self) -> None:
        now = now_us()
        queue, message_id, token, _, _ = self.sql.execute(CLAIM_ONE, ("bench", now + int(LEASE_S * 1e6), QUEUE, now)).fetchone()
        self.sql.execute(ACK, (queue, message_id, token))

    def put_batch(self, count: int = BATCH) -> None:
        self.sql.execute("begin immediate")
        self.sql.executemany(PUT, [row() for _ in range(count)])
        self.sql.execute("commit")

    def cycle_batch(self) -> None:
        now = now_us()
        claimed = self.sql.execute(CLAIM, ("bench", now + int(LEASE_S * 1e6), QUEUE, now, BATCH)).fetchall()
        self.sql.execute("begin immediate")
        self.sql.executemany(ACK, [claim[:3] for claim in claimed])
        self.sql.execute("commit")

    def swap(self, key: str, before: bytes, after: bytes) -> bool:
        return self.sql.execute(SWAP, (after, "flags", key, before)).rowcount == 1

    def singles(self, puts: int, cycles: int) -> Rates:
        rates = rates_of("put", puts, self.put) | rates_of("claim+ack", cycles, self.cycle)
        self.sql.execute("delete from messages")
        return rates

    def batches(self, count: int) -> Rates:
        return rates_of("put", count, self.put_batch, BATCH) | rates_of("claim+ack", count, self.cycle_batch, BATCH)


def row() -> tuple[object, ...]:
    """The parameters of a put."""
    now = now_us()
    return (QUEUE, new_id(), now, now, VALUE)


def now_us() -> int:
    return time.time_ns() // 1_000
