"""The common claim of a queue with groups: as many lanes as messages are asked for give one message each, and with it their turn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from holdfast.commands.claim_line import Claimed
from holdfast.commands.endings import event
from holdfast.commands.lanes import FARTHEST, refreshed
from holdfast.commands.transaction import Draft, OpenLane, Transaction
from holdfast.records import NO_VALUE, Message, ReturnTo, end_of
from holdfast.records.policies import NO_SETTINGS, SLOT_OF_GROUP, TOLD_GROUP, Lane, Policy

if TYPE_CHECKING:
    from holdfast.commands.claiming import Claim


def claim_one_each(tx: Transaction, command: "Claim", policy: Policy, lanes: Sequence[OpenLane]) -> Claimed | None:
    """Claim from open lanes of a queue that is not paused, throttled or bounded, and of which nothing is overdue.

    None, with nothing done, where it takes the full rules to share out.
    """
    each = choose_one_each(tx, command, policy, lanes)
    if each is None or not each.chosen:
        return None if each is None else Claimed([], 0.0, careful=policy.is_careful)
    token = tx.append([each.draft])
    messages = each.leased(token)
    tx.lease(messages, *each.terms(token))
    tx.save(each.served(token))
    return Claimed(messages, careful=policy.is_careful)


class OneEach(Struct, frozen=True, gc=False):
    """What a claim takes, one message of each lane, and what that makes of the lanes."""

    command: "Claim"
    policy: Policy
    now: int
    slot: int
    """What the end of a claim has to do, as bits of a message's `tied`."""
    lanes: Sequence[OpenLane]
    chosen: list[Message]
    """The first of the first of the lanes: nothing where a step has brought too much before."""

    @property
    def draft(self) -> Draft:
        """The event, whose number is the token."""
        return event(self.command.queue, "claimed", self.chosen, holder=self.command.holder)

    @property
    def until(self) -> int:
        """When the leases end."""
        return end_of(self.now, self.command.lease_under(self.policy))

    def terms(self, token: int) -> tuple[str, int, int, ReturnTo]:
        """Who holds them, under which token, until when, and where they go then."""
        return self.command.holder, token, self.until, self.command.expired_to

    def leased(self, token: int) -> list[Message]:
        """The messages as they are claimed."""
        (holder, _, until, expired_to), slot = self.terms(token), self.slot
        claim = (holder, token, self.now, until, expired_to)
        return [message.leased(*claim, tied=slot if message.group is None else slot | TOLD_GROUP) for message in self.chosen]

    def served(self, token: int) -> list[Lane]:
        """The lanes behind the claim: those that gave something go to the end of the round."""
        policy, now, more = self.policy, self.now, bool(self.slot)
        return [
            refreshed(replace(one.lane, turn=token, place=place, live=one.lane.live + more), policy, one.next_at, now, token)
            for place, one in enumerate(self.lanes[: len(self.chosen)], 1)
        ]


def choose_one_each(tx: Transaction, command: "Claim", policy: Policy, lanes: Sequence[OpenLane]) -> OneEach | None:
    """What the claim takes, where one message of each lane is what the full rules would choose."""
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
    chosen = tx.allowance.leading([one.first for one in lanes if one.first is not None])
    return OneEach(command, policy, tx.now, slot, lanes, chosen)
