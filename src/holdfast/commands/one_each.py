"""The common claim of a queue with groups: as many lanes as messages are asked for give one message each, and with it their turn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.commands.claim_line import Claimed
from holdfast.commands.endings import event
from holdfast.commands.lanes import FARTHEST, save_refreshed
from holdfast.commands.transaction import OpenLane, Transaction
from holdfast.records import NO_VALUE, end_of
from holdfast.records.policies import NO_SETTINGS, SLOT_OF_GROUP, TOLD_GROUP, Policy

if TYPE_CHECKING:
    from holdfast.commands.claiming import Claim


def claim_one_each(tx: Transaction, command: "Claim", policy: Policy, lanes: Sequence[OpenLane]) -> Claimed | None:
    """Claim from open lanes of a queue that is not paused, throttled or bounded, and of which nothing is overdue.

    None, with nothing done, where it takes the full rules to share out.
    """
    if policy.has_gate or policy.group_rate is not None or policy.keep_done_s is not None or command.take:
        return None
    is_strict, limit = policy.groups == "strict", policy.group_limit
    if not lanes or (len(lanes) < command.limit and not is_strict):
        return None
    slot = 0 if limit is None and not is_strict else SLOT_OF_GROUP
    limit = 1 if is_strict else FARTHEST if limit is None else limit
    for one in lanes:
        lane, first = one.lane, one.first
        if first is None or first.value is NO_VALUE or lane.credit != 1 or lane.live >= limit or lane.own != NO_SETTINGS:
            return None
    return _hand_out(tx, command, policy, lanes, slot)


def _hand_out(tx: Transaction, command: "Claim", policy: Policy, lanes: Sequence[OpenLane], slot: int) -> Claimed:
    chosen = tx.allowance.leading([one.first for one in lanes if one.first is not None])
    if not chosen:
        return Claimed([], 0.0, careful=policy.is_careful)
    token = tx.append([event(command.queue, "claimed", chosen, holder=command.holder)])
    until = end_of(tx.now, command.lease_under(policy))
    claim = (command.holder, token, tx.now, until, command.expired_to)
    messages = [message.leased(*claim, tied=slot if message.group is None else slot | TOLD_GROUP) for message in chosen]
    tx.lease(messages, command.holder, token, until, command.expired_to)
    given = enumerate(lanes[: len(chosen)], 1)
    served = [replace(one.lane, turn=token, place=place, live=one.lane.live + bool(slot)) for place, one in given]
    save_refreshed(tx, policy, served, token, {one.lane.name: one.next_at for one in lanes})
    return Claimed(messages, careful=policy.is_careful)
