"""Claiming from a queue whose policy asks for more than the first in line: groups, limits, rates, an order of its own, history.

Everything is done in the second half of a claim, on the state as it is by then: a command of the same step may just have freed a place.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.commands.claim_line import SWEEP, Claimed, key_line, with_values
from holdfast.commands.endings import bury_late, event, promote, resize
from holdfast.commands.history import finish, forget_done
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
from holdfast.commands.one_each import claim_one_each
from holdfast.commands.transaction import Draft, OpenLanes, Transaction
from holdfast.records import NEVER, Message, end_of, seconds_in
from holdfast.records.policies import KEPT_WHEN_DONE, SLOT_OF_GROUP, SLOT_OF_QUEUE, TOLD_GROUP, Lane, Policy, Settings

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
        self._before: int | None = None
        """The number of the last event before this claim's, once it was asked for."""
        self._lanes: list[Lane] = []
        """Those that gave something, as they are before."""
        self._shares: Shares | None = None
        self._behind: dict[str, int | None] = {}
        """The positions of the second in line, of lanes of which they are known."""

    def claim(self) -> Claimed:
        now, until = self._tx.now, self._settings.throttled_until
        if self._settings.paused or until > now:
            return self._nothing(seconds_in(until - now) if until > now and not self._settings.paused else None)
        has_groups = self._policy.groups is not None and self._command.key is None
        opened = self._tx.open_lanes(self._queue, self._command.limit) if has_groups else None
        if opened is None or opened.is_overdue:
            self._sweep()
            opened = None
        elif (
            self._settings.maxsize is None
            and not until
            and (claimed := claim_one_each(self._tx, self._command, self._policy, opened.lanes))
        ):
            return claimed
        # As they are by now: an ended lease may have freed a place.
        if opened is None or self._policy.has_gate or until:
            self._settings = self._tx.settings("queue", self._queue) or self._settings
        if until:
            self._settings = replace(self._settings, throttled_until=0)
            self._tx.save([self._settings])
        room = self._room()
        chosen = self._choose(room, opened) if room > 0 else []
        if chosen:
            return self._hand_out(chosen)
        if self._policy.keep_done_s is not None and forget_done(self._tx, self._queue, 1):
            forget_done(self._tx, self._queue, SWEEP)
        return self._nothing(self._due_in_s(is_paced=not room))

    def _nothing(self, due_in_s: float | None) -> Claimed:
        return Claimed([], due_in_s, careful=self._policy.is_careful)

    def _sweep(self) -> None:
        """Look after what time has overtaken: ended leases, late messages, delayed ones that are due, lanes that were to wake."""
        tx, key = self._tx, self._command.key
        overdue = (tx.line(self._queue, 0, self._most) if key is None else key_line(tx, self._queue, key)).overdue
        self._is_cut = len(overdue) >= self._most
        if overdue:
            self._number_before()
            self._sweep_messages(overdue)
        if self._policy.groups is not None:
            asleep = tx.find_lanes(self._queue, "wakes", self._most)
            self._is_cut = self._is_cut or len(asleep) >= self._most
            if asleep:
                save_refreshed(tx, self._policy, asleep, self._number_before())

    def _number_before(self) -> int:
        """The turn of lanes that begin: they come before what this claim serves."""
        if self._before is None:
            self._before = self._tx.latest()
        return self._before

    def _sweep_messages(self, overdue: Sequence[Message]) -> None:
        tx, now = self._tx, self._tx.now
        late = [message for message in overdue if message.state == "ready" and message.is_late(now)]
        expired = [message for message in overdue if message.state == "leased"]
        due = [lined(m, self._policy, now) for m in overdue if m.state == "ready" and not m.is_late(now)]
        endings = self._command.end(tx, expired, self._policy)
        endings.write(tx)
        drafts: list[Draft] = [event(self._queue, "expired", expired), *endings.drafts()] if expired else []
        tx.save(due)
        if late:
            drafts += self._drop_late(late)
        if drafts:
            tx.append(drafts)
        follow(tx, [*expired, *late], [*endings.entered, *due], self._number_before())

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

    def _choose(self, room: int, opened: OpenLanes | None) -> list[Message]:
        tx, queue = self._tx, self._queue
        if self._command.key is not None:
            return self._fitting(self._under_key(self._command.key))
        if self._policy.groups is not None:
            return self._fitting(self._from_lanes(room, opened))
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

    def _from_lanes(self, room: int, opened: OpenLanes | None) -> list[Message]:
        """The messages that the open lanes give, in the order in which they do."""
        tx, passed = self._tx, 0
        while True:
            found = (opened or tx.open_lanes(self._queue, room)).lanes[:room]
            most = [0 if one.first is None else min(room, self._most_of(one.lane)) for one in found]
            empty = [one.lane for one, count in zip(found, most, strict=True) if not count]
            if not empty:
                break
            save_refreshed(tx, self._policy, empty, self._number_before())
            passed, opened = passed + len(empty), None
            if passed >= self._most:
                self._is_cut = True
                return []
        self._lanes = [one.lane for one in found]
        self._behind = {one.lane.name: one.next_at for one in found}
        heads = [[one.first] for one in found if one.first is not None]
        self._shares = self._share_out(heads, most, room)
        given = [iter(line) for line in heads]
        return [next(given[place]) for place in self._shares.order]

    def _share_out(self, heads: list[list[Message]], most: list[int], room: int) -> Shares:
        """What each lane gives of its line, of which only the first is known; more is read of those that would give more."""
        lanes = self._lanes
        shares = share_out([(lane, 1) for lane in lanes], room)
        if len(lanes) == room and all(lane.credit == 1 for lane in lanes):
            return shares
        wanted = {place: 1 for place, _ in enumerate(lanes)}
        while True:
            wanted = {
                place: min(most[place], max(lanes[place].credit, 2 * wanted[place]))
                for place in wanted
                if shares.given[place].taken == len(heads[place]) == wanted[place] < most[place]
            }
            if not wanted:
                return shares
            lines = self._tx.lane_heads(self._queue, {lanes[place].name: count for place, count in wanted.items()})
            for place in wanted:
                heads[place] = lines.get(lanes[place].name, heads[place])
            shares = share_out([(lane, len(line)) for lane, line in zip(lanes, heads, strict=True)], room)

    def _most_of(self, lane: Lane) -> int:
        """How many messages the lane's own limit and rate let through."""
        limit, room = limit_of(lane, self._policy), self._command.limit
        if limit is not None and not (self._command.take and self._policy.groups == "fair"):
            room = min(room, limit - lane.live)
        return allowed(rate_of(lane, self._policy), lane.tat, self._tx.now, room) if room > 0 else 0

    def _hand_out(self, chosen: list[Message]) -> Claimed:
        tx, command = self._tx, self._command
        token = tx.append([event(self._queue, "claimed", chosen, holder=command.holder)])
        lanes = self._lanes_behind(chosen, token)
        limits = {lane.name: limit_of(lane, self._policy) for lane in lanes}
        until = end_of(tx.now, command.lease_under(self._policy))
        claim = (command.holder, token, tx.now, until, command.expired_to)
        messages = [message.leased(*claim, tied=self._ties(message, limits)) for message in chosen]
        if command.take:
            finish(tx, self._queue, messages)
        else:
            tx.lease(messages, command.holder, token, until, command.expired_to)
        if self._settings.maxsize is not None:
            resize(tx, self._queue, -len(chosen))
        if self._policy.has_gate:
            self._use_gate(len(chosen), token)
        save_refreshed(tx, self._policy, lanes, token, self._firsts_behind())
        if command.take:
            promote(tx, self._queue, chosen)
        own = any(lane.own.limit is not None or lane.own.rate is not None for lane in lanes)
        return Claimed(messages, careful=self._policy.is_careful or own)

    def _firsts_behind(self) -> dict[str, int | None]:
        """The positions of the first in line behind the claim, of lanes that gave one message."""
        if self._shares is None:
            return {}
        return {one.lane.name: self._behind[one.lane.name] for one in self._shares.given if one.taken == 1}

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
        self._tx.save([settings])

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
