"""What must hold for the groups of a queue after every step, whatever happened before."""

from collections import Counter

from holdfast.commands import Browse, Groups, Names
from holdfast.commands.lanes import refreshed
from holdfast.records import Message
from holdfast.records.policies import SLOT_OF_GROUP, SLOT_OF_QUEUE, Lane, Policy, Settings
from holdfast.stores import Store

MOST = 10_000


def broken_rules(store: Store, queue: str, now: int) -> list[str]:
    """What does not hold; empty where all is well. Settings of the queue must not have changed since its lanes were last touched."""
    settings = next((one for one in store.execute(Names("queue")).settings if one.name == queue), None)
    if settings is None or settings.policy is None:
        return []
    lanes = {lane.name: lane for lane in store.execute(Groups(queue, limit=MOST)).lanes}
    leased = store.execute(Browse(queue, state="leased", limit=MOST)).messages
    ready = [message for message in store.execute(Browse(queue, limit=MOST)).messages if message.rank is not None]
    faults = _miscounted(settings, leased)
    if settings.policy.groups is None:
        return faults
    faults += [f"{m.id} is in line of {m.lane!r}, which is not known" for m in ready if m.lane not in lanes]
    live = Counter(message.lane for message in leased if message.tied & SLOT_OF_GROUP)
    faults += [f"{name!r} has {count} claims and is not known" for name, count in live.items() if name not in lanes]
    for lane in lanes.values():
        if lane.live != live[lane.name]:
            faults.append(f"{lane.name!r} counts {lane.live} claims and has {live[lane.name]}")
        faults += _wrong_turn(lane, settings.policy, [message for message in ready if message.lane == lane.name], now)
    return faults


def _miscounted(settings: Settings, leased: list[Message]) -> list[str]:
    live = sum(bool(message.tied & SLOT_OF_QUEUE) for message in leased)
    return [] if settings.live == live else [f"{settings.name!r} counts {settings.live} claims and has {live}"]


def _wrong_turn(lane: Lane, policy: Policy, line: list[Message], now: int) -> list[str]:
    """Whether the lane is as its rule says, but for what time did since it was last touched."""
    head = min(line, key=lambda message: (-message.level, message.rank or 0, message.n), default=None)
    rule = refreshed(lane, policy, None if head is None else head.position, now, 1)
    is_due = lane.wakes is not None and lane.wakes <= now
    faults = []
    if lane.is_gone:
        faults.append(f"nothing is known of {lane.name!r}, and it is kept")
    if rule.open != lane.open and not is_due:
        faults.append(f"{lane.name!r} is {'open' if lane.open else 'closed'}, and should not be")
    if rule.wakes is not None and (lane.wakes is None or lane.wakes > rule.wakes):
        faults.append(f"{lane.name!r} wakes at {lane.wakes}, and should at {rule.wakes}")
    if bool(rule.turn) != bool(lane.turn) and not is_due:
        faults.append(f"{lane.name!r} has turn {lane.turn}, with {len(line)} in line and {lane.live} claimed")
    return faults
