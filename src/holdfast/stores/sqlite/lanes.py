"""The lanes of queues in a SQLite file, as a transaction sees them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from sqlite3 import Cursor as SqlCursor
from typing import Any

from msgspec import json

from holdfast.policy_records import NO_SETTINGS, Lane, LaneOrder, OwnSettings, Policy, Settings
from holdfast.records import Message
from holdfast.stores.sqlite.statements import SQL

decode_policy: Callable[[str], Policy] = lru_cache(maxsize=1_000)(json.Decoder(Policy).decode)
_decode_own = lru_cache(maxsize=1_000)(json.Decoder(OwnSettings).decode)


OPEN, OWN = 4, 11
"""Columns of a lane."""


class Lanes:
    """The part of a transaction that groups use."""

    sql: SqlCursor
    now: int

    def _bare(self, row: tuple[Any, ...]) -> Message:
        raise NotImplementedError

    def lanes(self, queue: str, names: Collection[str]) -> dict[str, Lane]:
        found = {}
        for name in names:
            row = self.sql.execute(SQL["lane"], (queue, name)).fetchone()
            if row is not None:
                found[name] = read_lane(row)
        return found

    def find_lanes(self, queue: str, by: LaneOrder, limit: int, prefix: str = "", after: str | None = None) -> list[Lane]:
        asked = {"queue": queue, "limit": limit, "prefix": prefix, "after": after, "now": self.now}
        return [read_lane(row) for row in self.sql.execute(SQL[f"lanes_by_{by}"], asked)]

    def lane_heads(self, queue: str, counts: Mapping[str, int]) -> dict[str, list[Message]]:
        found = {}
        for lane, limit in counts.items():
            asked = {"queue": queue, "lane": lane, "now": self.now, "limit": limit}
            rows = self.sql.execute(SQL["lane_heads"], asked).fetchall()
            if rows:
                found[lane] = [self._bare(row) for row in rows]
        return found

    def histories(self, limit: int) -> list[str]:
        return [str(row[0]) for row in self.sql.execute(SQL["histories"], (limit,))]

    def save_lanes(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            if lane.is_gone:
                self.sql.execute(SQL["delete_lane"], (lane.queue, lane.name))
            else:
                self.sql.execute(SQL["save_lane"], write_lane(lane))


def read_lane(row: tuple[Any, ...]) -> Lane:
    """The lane of a row."""
    own: Any = NO_SETTINGS if row[OWN] is None else _decode_own(row[OWN])
    fields: tuple[Any, ...] = (*row[:OPEN], bool(row[OPEN]), *row[OPEN + 1 : OWN], own)
    return Lane(*fields)


def write_lane(lane: Lane) -> tuple[object, ...]:
    """The row of a lane."""
    own = None if lane.own == NO_SETTINGS else json.encode(lane.own).decode()
    return (
        *(lane.queue, lane.name, lane.turn, lane.place, lane.open, lane.live, lane.credit, lane.wakes),
        *(lane.tat, lane.last, lane.throttled_until, own),
    )


def read_settings(row: tuple[Any, ...]) -> Settings:
    """The settings of a row."""
    kind, name, paused, maxsize, size, created_at, policy, *gate = row
    return Settings(kind, name, bool(paused), maxsize, size, created_at, None if policy is None else decode_policy(policy), *gate)


def write_settings(settings: Settings) -> tuple[object, ...]:
    """The row of settings."""
    policy = settings.policy
    return (
        *(settings.kind, settings.name, settings.paused, settings.maxsize, settings.size, settings.created_at),
        None if policy is None else json.encode(policy).decode(),
        *(policy is not None and policy.has_lanes, settings.live, settings.tat, settings.last, settings.throttled_until),
    )
