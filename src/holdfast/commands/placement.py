"""Where each item of a put goes: the policies for ids and keys that are already there."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from holdfast.commands.endings import taken_ids
from holdfast.commands.lanes import lane_of, lined, unlined
from holdfast.commands.recent import Recent
from holdfast.commands.refusal_errors import id_taken, key_in_flight, key_is_recent, queue_full
from holdfast.commands.transaction import Transaction
from holdfast.records import UPDATED, Message
from holdfast.records.policies import Policy, Settings

if TYPE_CHECKING:
    from holdfast.commands.putting import Item


class Placement(Struct):
    """Where each item of a put goes, worked out one after the other as if each were put alone."""

    settings: Settings | None
    now: int
    ids: list[str] = []
    created: list[bool] = []
    added: dict[str, Message] = {}
    updated: dict[str, Message] = {}
    late: list[Message] = []
    """Under these keys, and too late to be started: they swallow no new work."""
    taken: set[str] = set()
    live: dict[str | None, Message] = {}
    copies: dict[str | None, Message] = {}
    others: set[int] = set()
    """The items, by their place, under whose id another value is stored."""
    postponed: dict[str, Message] = {}
    """Messages that were there, as they were before this put postponed them."""
    recent: Recent | None = None

    @property
    def policy(self) -> Policy | None:
        return None if self.settings is None else self.settings.policy

    @property
    def is_bounded(self) -> bool:
        return self.settings is not None and self.settings.maxsize is not None

    @property
    def ready_count(self) -> int:
        return sum(message.state == "ready" for message in self.added.values())

    def look_up(self, tx: Transaction, queue: str, items: Sequence["Item"], recent: str | None) -> None:
        self.taken = taken_ids(tx, queue, [item.id for item in items])
        self._compare_values(tx, queue, items)
        keys = {item.key for item in items if item.key is not None}
        for message in tx.keyed(queue, keys) if keys else ():
            if message.state == "ready" and message.is_late(self.now):
                self.late.append(message)
                continue
            (self.copies if message.state == "buffered" else self.live)[message.key] = message
        self.late.sort(key=lambda message: message.n)  # Stores find keys in an order of their own.
        if recent is not None:
            self.recent = Recent(recent)
            self.recent.look_up(tx, {item.key for item in items if item.key is not None and item.unique_for_s is not None})

    def _compare_values(self, tx: Transaction, queue: str, items: Sequence["Item"]) -> None:
        places = dict[str, list[int]]()
        for place, item in enumerate(items):
            if item.if_id == "reject" and item.id in self.taken:
                places.setdefault(item.id, []).append(place)
        for message in (
            tx.messages(queue, list(places), values=True) if places else ()
        ):  # One at a time: together their values may be large.
            self.others.update(place for place in places[message.id] if items[place].value != message.value)

    def place(self, queue: str, item: "Item", wall_offset: int) -> None:
        if item.id in self.taken:
            if item.if_id == "reject" and self._has_other_value(item):
                raise id_taken(queue, item.id)
            self._answer(item.id, created=False)
        elif item.key is None or item.key not in self.live:
            if self.recent is not None and item.unique_for_s is not None and item.key in self.recent.ids:
                if item.if_recent == "reject":
                    raise key_is_recent(queue, item.key)
                self._answer(self.recent.ids[item.key], created=False)
            else:
                self._add(lined(item.message(queue, self.now, wall_offset), self.policy, self.now), item.unique_for_s)
        else:
            self._place_behind(queue, item, item.key, wall_offset)

    def _place_behind(self, queue: str, item: "Item", key: str, wall_offset: int) -> None:
        """The key is taken: the put's policy decides."""
        first, copy = self.live[key], self.copies.get(key)
        held = first.held_at(self.now)
        policy = item.if_leased if held else item.if_ready
        if policy == "reject":
            raise key_in_flight(queue, key, held=held)
        if policy == "keep":
            self._answer((copy or first).id, created=False)
        elif copy is not None or policy in ("update", "postpone"):
            self._update(copy or first, item, wall_offset)
        else:
            self._add(self._behind(first, item.message(queue, self.now, wall_offset)), item.unique_for_s)

    def _behind(self, first: Message, message: Message) -> Message:
        """The copy that waits behind another message: of the same lane it is to take its place, else it goes to the back of its own."""
        waiting = replace(message, state="buffered", lane=lane_of(message, self.policy))
        if message.position > self.now or first.lane != waiting.lane:
            return waiting
        is_strict = self.policy is not None and self.policy.groups == "strict"
        return replace(waiting, position=first.rank if is_strict and first.rank is not None else first.position)

    def _has_other_value(self, item: "Item") -> bool:
        """Whether its id, which is taken, has another value by now."""
        message = self.added.get(item.id) or self.updated.get(item.id)
        return len(self.ids) in self.others if message is None else message.value != item.value

    def _add(self, message: Message, unique_for_s: float | None) -> None:
        if self.recent is not None and unique_for_s is not None and message.key is not None:
            self.recent.begin(message.key, message.id, unique_for_s)
        self.added[message.id] = message
        self.taken.add(message.id)
        if message.key is not None:
            (self.copies if message.state == "buffered" else self.live)[message.key] = message
        self._answer(message.id, created=True)

    def _update(self, message: Message, item: "Item", wall_offset: int) -> None:
        changed = replace(message, value=item.value, **{name: getattr(item, name) for name in UPDATED})
        if item.if_ready == "postpone" and message.state == "ready":
            changed = changed.postponed(item.due_at(self.now, wall_offset), item.at_latest_s)
            changed = lined(unlined(changed), self.policy, self.now)
            if message.id not in self.added:
                self.postponed.setdefault(message.id, message)
        (self.added if message.id in self.added else self.updated)[message.id] = changed
        (self.copies if message.state == "buffered" else self.live)[item.key] = changed
        self._answer(message.id, created=False)

    def _answer(self, message_id: str, *, created: bool) -> None:
        self.ids.append(message_id)
        self.created.append(created)

    def check_room(self, tx: Transaction, queue: str) -> None:
        if self.settings is None or self.settings.maxsize is None:
            return
        wanted, maxsize = self.ready_count, self.settings.maxsize
        used = self.settings.size - len(self.late) + tx.reserved.get(queue, 0)
        if wanted and used + wanted > maxsize:
            raise queue_full(queue, used, maxsize, wanted)
        tx.reserved[queue] = tx.reserved.get(queue, 0) + wanted
