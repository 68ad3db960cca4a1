"""Claiming from a queue whose policy asks for more than the first in line: groups, limits, rates, an order of its own, history.

Everything is done in the second half of a claim, on the state as it is by then: a command of the same step may just have freed a place.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.commands.claim_line import SWEEP, Claimed, key_line, with_values
from holdfast.commands.endings import bury_late, event, promote, resize
from holdfast.commands.history import finish
from holdfast.commands.lanes import (
    Shares,
    allowed,
    follow,
    free_at,
    limit_of,
    lined,
    rate_of,
    save_refreshed,
    share_out,
    used,
)
from holdfast.commands.transaction import Draft, Transaction
from holdfast.policy_records import KEPT_WHEN_DONE, SLOT_OF_GROUP, SLOT_OF_QUEUE, TOLD_GROUP, Lane, Policy, Settings
from holdfast.records import NEVER, Message, end_of, seconds_in

if TYPE_CHECKING:
    from holdfast.commands.claiming import Claim


class RuledClaim:
    """One claim, in one step."""

    def __init__(self, tx: Transaction, command: "Claim", settings: Settings) -> None:
        self._tx = tx
        self._command = command
        self._queue = command.queue
        self._settings = settings
        self._policy: Policy = settings.policy or Policy()
        self._most = command.limit + SWEEP
        """How much of what time has overtaken one claim looks after."""
        self._is_cut = False
        """Whether it saw only a part of that."""
        self._before = tx.latest()
        self._lanes: list[Lane] = []
        """Those that gave something, as they are before."""
        self._shares: Shares | None = None

    def claim(self) -> Claimed:
        now, until = self._tx.now, self._settings.throttled_until
        if self._settings.paused or until > now:
            return self._nothing(seconds_in(until - now) if until > now and not self._settings.paused else None)
        self._sweep()
        # As they are by now: an ended lease may have freed a place.
        self._settings = self._tx.settings("queue", self._queue) or self._settings
        if until:
            self._settings = replace(self._settings, throttled_until=0)
            self._tx.save_settings(self._settings)
        room = self._room()
        chosen = self._choose(room) if room > 0 else []
        return self._hand_out(chosen) if chosen else self._nothing(self._due_in_s(is_paced=not room))

    def _nothing(self, due_in_s: float | None) -> Claimed:
        return Claimed([], due_in_s, careful=self._policy.is_careful)

    def _sweep(self) -> None:
        """Look after what time has overtaken: ended leases, late messages, delayed ones that are due, lanes that were to wake."""
        tx, key = self._tx, self._command.key
        overdue = (tx.line(self._queue, 0, self._most) if key is None else key_line(tx, self._queue, key)).overdue
        self._is_cut = len(overdue) >= self._most
        if overdue:
            self._sweep_messages(overdue)
        if self._policy.groups is not None:
            asleep = tx.find_lanes(self._queue, "wakes", self._most)
            self._is_cut = self._is_cut or len(asleep) >= self._most
            save_refreshed(tx, self._policy, asleep, self._before)

    def _sweep_messages(self, overdue: Sequence[Message]) -> None:
        tx, now = self._tx, self._tx.now
        late = [message for message in overdue if message.state == "ready" and message.is_late(now)]
        expired = [message for message in overdue if message.state == "leased"]
        due = [lined(m, self._policy, now) for m in overdue if m.state == "ready" and not m.is_late(now)]
        endings = self._command.end(tx, expired, self._policy)
        endings.write(tx)
        drafts: list[Draft] = [event(self._queue, "expired", expired), *endings.drafts()] if expired else []
        tx.restore(due)
        if late:
            drafts += self._drop_late(late)
        if drafts:
            tx.append(drafts)
        follow(tx, [*expired, *late], [*endings.entered, *due], self._before)

    def _drop_late(self, late: list[Message]) -> list[Draft]:
        tx, told = self._tx, event(self._queue, "expired", late, started=False)
        resize(tx, self._queue, -len(late))
        if self._policy.late_to == "dead":
            return [told, *bury_late(tx, self._queue, late, self._policy, self._command.budget(self._policy)).drafts()]
        tx.remove(late)
        promote(tx, self._queue, late)
        return [told]

    def _room(self) -> int:
        """How many messages the queue's limit and rate let through."""
        room, limit = self._command.limit, self._policy.limit
        if limit is not None and not self._command.take:
            room = min(room, limit - self._settings.live)
        return allowed(self._policy.rate, self._settings.tat, self._tx.now, room) if room > 0 else -1

    def _choose(self, room: int) -> list[Message]:
        tx, queue = self._tx, self._queue
        if self._command.key is not None:
            return self._fitting(self._under_key(self._command.key))
        if self._policy.groups is not None:
            return self._fitting(self._from_lanes(room))
        if self._policy.has_lanes:
            return self._fitting(tx.lane_heads(queue, {"": room}).get("", []))
        return tx.allowance.leading(tx.line(queue, room, 0).heads)

    def _fitting(self, messages: list[Message]) -> list[Message]:
        return self._tx.allowance.leading(with_values(self._tx, self._queue, messages))

    def _under_key(self, key: str) -> list[Message]:
        """The message under a key, if its group lets it through: only the turn does not count."""
        tx, policy = self._tx, self._policy
        heads = key_line(tx, self._queue, key).heads
        if not heads or policy.groups is None or heads[0].lane is None:
            return heads
        message, name = heads[0], heads[0].lane
        lane = tx.lanes(self._queue, [name]).get(name)
        first = tx.lane_heads(self._queue, {name: 1}).get(name, [])
        if lane is None or not lane.open or not self._most_of(lane) or (policy.groups == "strict" and first[0].n != message.n):
            return []
        self._lanes = [lane]
        return [message]

    def _from_lanes(self, room: int) -> list[Message]:
        """The messages that the open lanes give, in the order in which they do."""
        tx, passed = self._tx, 0
        while True:
            lanes = tx.find_lanes(self._queue, "turn", room)
            most = {lane.name: min(room, self._most_of(lane)) for lane in lanes}
            heads = self._heads(lanes, most, room)
            empty = [lane for lane in lanes if not heads.get(lane.name)]
            if not empty:
                break
            save_refreshed(tx, self._policy, empty, self._before)
            passed += len(empty)
            if passed >= self._most:
                self._is_cut = True
                return []
        shares = share_out([(lane, len(heads[lane.name])) for lane in lanes], room)
        given = {lane.name: iter(heads[lane.name]) for lane in lanes}
        self._lanes, self._shares = lanes, shares
        return [next(given[lanes[place].name]) for place in shares.order]

    def _most_of(self, lane: Lane) -> int:
        """How many messages the lane's own limit and rate let through."""
        limit, room = limit_of(lane, self._policy), self._command.limit
        if limit is not None and not (self._command.take and self._policy.groups == "fair"):
            room = min(room, limit - lane.live)
        return allowed(rate_of(lane, self._policy), lane.tat, self._tx.now, room) if room > 0 else 0

    def _heads(self, lanes: Sequence[Lane], most: dict[str, int], room: int) -> dict[str, list[Message]]:
        """As many messages of each lane as it may have to give: few at first, and more of those that gave all of them."""
        wanted = {lane.name: min(most[lane.name], lane.credit) for lane in lanes if most[lane.name]}
        heads: dict[str, list[Message]] = {}
        while wanted:
            heads |= self._tx.lane_heads(self._queue, wanted)
            shares = share_out([(lane, len(heads.get(lane.name, ()))) for lane in lanes], room)
            asked, wanted = wanted, {}
            for one in shares.given:
                name = one.lane.name
                if name in asked and one.taken == len(heads.get(name, ())) == asked[name] < most[name]:
                    wanted[name] = min(most[name], 2 * asked[name])
        return heads

    def _hand_out(self, chosen: list[Message]) -> Claimed:
        tx, command = self._tx, self._command
        token = tx.append([event(self._queue, "claimed", chosen, holder=command.holder)])
        lanes = self._lanes_behind(chosen, token)
        limits = {lane.name: limit_of(lane, self._policy) for lane in lanes}
        chosen = [replace(message, tied=self._ties(message, limits)) for message in chosen]
        until = end_of(tx.now, command.lease_under(self._policy))
        if command.take:
            finish(tx, self._queue, [message.leased(command.holder, token, tx.now, until, command.expired_to) for message in chosen])
        else:
            tx.lease(chosen, command.holder, token, until, command.expired_to)
        if self._settings.maxsize is not None:
            resize(tx, self._queue, -len(chosen))
        self._use_gate(len(chosen), token)
        save_refreshed(tx, self._policy, lanes)
        if command.take:
            promote(tx, self._queue, chosen)
        messages = [message.leased(command.holder, token, tx.now, until, command.expired_to) for message in chosen]
        own = any(lane.own.limit is not None or lane.own.rate is not None for lane in lanes)
        return Claimed(messages, careful=self._policy.is_careful or own)

    def _ties(self, message: Message, limits: dict[str, int | None]) -> int:
        """What the end of the claim will have to do."""
        is_slot = not self._command.take
        slot = SLOT_OF_GROUP if is_slot and message.lane is not None and limits.get(message.lane) is not None else 0
        queue = SLOT_OF_QUEUE if is_slot and self._policy.limit is not None else 0
        kept = KEPT_WHEN_DONE if self._policy.keep_done_s is not None else 0
        return slot | queue | kept | (TOLD_GROUP if message.group is not None else 0)

    def _lanes_behind(self, chosen: list[Message], token: int) -> list[Lane]:
        """The lanes that gave something, as the claim leaves them."""
        if self._shares is not None and len(chosen) < len(self._shares.order):
            self._shares = share_out([(one.lane, one.most) for one in self._shares.given], len(chosen))
        lanes = []
        if self._shares is None:
            lanes = [self._used(lane, len(chosen), token) for lane in self._lanes]
        else:
            lanes = [self._used(one.served(token), one.taken, token) for one in self._shares.given if one.taken]
        return lanes

    def _used(self, lane: Lane, count: int, token: int) -> Lane:
        rate = rate_of(lane, self._policy)
        if limit_of(lane, self._policy) is not None and not self._command.take:
            lane = replace(lane, live=lane.live + count)
        return lane if rate is None else replace(lane, tat=used(rate, lane.tat, self._tx.now, count), last=token)

    def _use_gate(self, count: int, token: int) -> None:
        """Count what was claimed under the queue's own limit and rate."""
        policy, settings = self._policy, self._tx.settings("queue", self._queue) or self._settings
        if policy.limit is not None and not self._command.take:
            settings = replace(settings, live=settings.live + count)
        if policy.rate is not None:
            settings = replace(settings, tat=used(policy.rate, settings.tat, self._tx.now, count), last=token)
        if policy.limit is not None or policy.rate is not None:
            self._tx.save_settings(settings)

    def _due_in_s(self, *, is_paced: bool) -> float | None:
        """When asking again may find something."""
        tx, rate = self._tx, self._policy.rate
        if self._is_cut or tx.allowance.is_cut:
            return 0.0
        if is_paced:
            return seconds_in(max(0, free_at(rate, self._settings.tat) - tx.now))
        due = None if self._command.key is None else key_line(tx, self._queue, self._command.key).next_due
        if due is None or due <= tx.now:
            due = tx.line(self._queue, 0, 1).next_due
        return None if due is None or due >= NEVER else seconds_in(max(0, due - tx.now))
