"""The floor: the fewest statements that do the job, on the very tables, indexes, pages and settings that the store has.

It writes no events and never looks for leases that have ended, so it is a little lower than any queue can stand.
"""

import sqlite3
import time
from pathlib import Path

from bench.measure import Rates, rates_of
from bench.ours import BATCH, LEASE_S, QUEUE, VALUE, Durability
from holdfast.ids import new_id
from holdfast.stores.sqlite.file import migrations

PUT = """
insert into holdfast_messages (
  queue, id, state, priority, position, attempts, failures, holder, token, since, until, expired_to, created_at, endings, value
)
values (?, ?, 'ready', 0, ?, 0, 0, '', 0, 0, 0, 'place', ?, 0, ?)
"""

CLAIM = """
update holdfast_messages
set state = 'leased', attempts = attempts + 1, token = token + 1, holder = ?1, alarm = ?2, until = ?2, since = ?4
where n in (
  select n
  from holdfast_messages
  where queue = ?3 and state = 'ready' and position <= ?4
  order by priority desc, position
  limit ?5
)
returning queue, id, token, attempts, value
"""

CLAIM_ONE = CLAIM.replace("n in (", "n = (").replace("limit ?5", "limit 1")

ACK = """
delete from holdfast_messages
where queue = ? and id = ? and token = ? and state = 'leased' and until > ?
"""

SWAP = """
update holdfast_entries
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
        self.sql.execute("pragma secure_delete = off")
        if is_new:
            self.sql.executescript(migrations()[0])

    def put(self) -> None:
        self.sql.execute(PUT, row())

    def cycle(self) -> None:
        now = now_us()
        queue, message_id, token, _, _ = self.sql.execute(CLAIM_ONE, ("bench", now + int(LEASE_S * 1e6), QUEUE, now)).fetchone()
        self.sql.execute(ACK, (queue, message_id, token, now))

    def put_batch(self, count: int = BATCH) -> None:
        self.sql.execute("begin immediate")
        self.sql.executemany(PUT, [row() for _ in range(count)])
        self.sql.execute("commit")

    def cycle_batch(self) -> None:
        now = now_us()
        claimed = self.sql.execute(CLAIM, ("bench", now + int(LEASE_S * 1e6), QUEUE, now, BATCH)).fetchall()
        self.sql.execute("begin immediate")
        self.sql.executemany(ACK, [(*claim[:3], now) for claim in claimed])
        self.sql.execute("commit")

    def swap(self, key: str, before: bytes, after: bytes) -> bool:
        return self.sql.execute(SWAP, (after, "flags", key, before)).rowcount == 1

    def singles(self, puts: int, cycles: int) -> Rates:
        rates = rates_of("put", puts, self.put) | rates_of("claim+ack", cycles, self.cycle)
        self.sql.execute("delete from holdfast_messages")
        return rates

    def batches(self, count: int) -> Rates:
        return rates_of("put", count, self.put_batch, BATCH) | rates_of("claim+ack", count, self.cycle_batch, BATCH)


def row() -> tuple[object, ...]:
    """The parameters of a put."""
    now = now_us()
    return (QUEUE, new_id(), now, now, VALUE)


def now_us() -> int:
    return time.time_ns() // 1_000
