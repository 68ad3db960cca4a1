"""Groups as shown to users."""

from holdfast.commands.groups import Grouped
from holdfast.commands.lanes import limit_of, rate_of
from holdfast.records.policies import Lane, Policy, Settings
from holdfast.results import GroupInfo, wall_time

NO_POLICY = Policy()


def groups_seen(found: Grouped, settings: Settings | None, offset_us: int) -> list[GroupInfo]:
    """The groups of a page, in its order."""
    policy = NO_POLICY if settings is None or settings.policy is None else settings.policy
    return [_seen(lane, policy, found.now, offset_us) for lane in found.lanes]


def _seen(lane: Lane, policy: Policy, now: int, offset_us: int) -> GroupInfo:
    is_awake = lane.wakes is not None and lane.wakes <= now
    return GroupInfo(
        name=lane.name,
        ready=lane.open or (is_awake and lane.turn > 0),
        live=lane.live,
        limit=limit_of(lane, policy),
        rate=rate_of(lane, policy),
        weight=lane.own.weight,
        paused=lane.own.paused,
        held_by=lane.own.held,
        wakes_at=None if lane.wakes is None or lane.wakes <= now else wall_time(lane.wakes, offset_us),
        throttled_until=wall_time(lane.throttled_until, offset_us) if lane.throttled_until > now else None,
    )
