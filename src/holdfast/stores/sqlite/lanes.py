"""The lanes of queues in a SQLite file, as a transaction sees them."""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Raw, json

from holdfast.commands.allowance import ANSWER_BYTES
from holdfast.commands.transaction import OpenLane, OpenLanes
from holdfast.records import NO_VALUE, Message
from holdfast.records.policies import NO_SETTINGS, Lane, LaneOrder, OwnSettings, Policy, Settings
from holdfast.stores.sqlite.reading import Reading
from holdfast.stores.sqlite.rows import NUMBER, READ, read_message
from holdfast.stores.sqlite.statements import SQL

decode_policy: Callable[[str], Policy] = lru_cache(maxsize=1_000)(json.Decoder(Policy).decode)
_decode_own = lru_cache(maxsize=1_000)(json.Decoder(OwnSettings).decode)


OPEN, OWN = 4, 11
"""Columns of a lane."""

MESSAGE = len(READ) + 1
NEXT_AT, IS_OVERDUE, FREE_POLICY, LANE = MESSAGE, MESSAGE + 1, MESSAGE + 2, MESSAGE + 3
"""Columns of `open_lanes`: first those of a message with its value, last those of a lane."""


class Lanes(Reading):
    """The part of a transaction that groups use."""

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

    def open_lanes(self, queue: str, limit: int) -> OpenLanes:
        return self.look_at_lanes(queue, limit)[1]

    def look_at_lanes(self, queue: str, limit: int) -> tuple[Policy | None, OpenLanes]:
        """The open lanes, and the policy of the queue, unless that is paused, bounded or throttled."""
        found, is_overdue, size, policy = list[OpenLane](), True, 0, None
        for row in self.sql.execute(SQL["open_lanes"], (queue, self.now, limit)):
            value, is_overdue, policy = row[MESSAGE - 1], bool(row[IS_OVERDUE]), row[FREE_POLICY]
            first = None if row[NUMBER] is None else read_message(row[:MESSAGE], NO_VALUE if value is None else Raw(value))
            found.append(OpenLane(read_lane(row[LANE:]), first, row[NEXT_AT]))
            if value is not None and (size := size + len(value)) > ANSWER_BYTES:
                break
        return None if policy is None else decode_policy(policy), OpenLanes(is_overdue, found)

    def lane_heads(self, queue: str, counts: Mapping[str, int]) -> dict[str, list[Message]]:
        found = {}
        for lane, limit in counts.items():
            asked = {"queue": queue, "lane": lane, "now": self.now, "limit": limit}
            rows = self.sql.execute(SQL["lane_heads"], asked).fetchall()
            if rows:
                found[lane] = [self._bare(row) for row in rows]
        return found


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
    """The row of settings. A release that knows nothing of policies finds each queue paused whose claims go by one."""
    policy, is_ruled = settings.policy, settings.is_ruled
    return (
        *(
            settings.kind,
            settings.name,
            settings.paused or is_ruled,
            settings.paused if is_ruled else None,
            settings.maxsize,
            settings.size,
            settings.created_at,
        ),
        None if policy is None else json.encode(policy).decode(),
        *(policy is not None and policy.has_lanes, settings.live, settings.tat, settings.last, settings.throttled_until),
    )
