"""How claims end other than done: returned, replaced by a buffered copy, buried, or moved to a dead-letter queue.

`Settle` ends claims because their holder says so, `Claim` because their time is up; what follows is the same.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from holdfast.commands.lanes import follow, lined
from holdfast.commands.topics import key_topic, queue_topic, room_topic
from holdfast.commands.transaction import Draft, Transaction
from holdfast.records import Ending, Message, ReturnTo
from holdfast.records.policies import Lane, Policy, Settings


class Budget(Struct, frozen=True, gc=False):
    """The claimer's fallbacks for messages that carry none of their own, and behind these the queue's."""

    max_attempts: int | None = None
    dead_letter: str | None = None

    @classmethod
    def of(cls, asked: "Budget", policy: Policy | None) -> "Budget":
        if policy is None:
            return asked
        return cls(policy.max_attempts if asked.max_attempts is None else asked.max_attempts, asked.dead_letter or policy.dead_letter)

    def is_spent(self, message: Message, failures: int) -> bool:
        limit = self.max_attempts if message.max_attempts is None else message.max_attempts
        return limit is not None and failures >= limit

    def burial_place(self, message: Message) -> str | None:
        return message.dead_letter or self.dead_letter


class Endings(Struct):
    """What will become of messages of one queue whose claims end; each list holds them as they will be."""

    queue: str
    buffered: Collection[str] = ()
    """Keys with a buffered copy."""
    back: list[Message] = []
    gone: list[Message] = []
    dead: list[Message] = []
    moved: list[Message] = []
    moved_from: list[Message] = []
    """What each of `moved` was in this queue."""
    entered: list[Message] = []
    """What became ready, here or elsewhere, once it is written."""
    keys: list[str] = []
    """Whose buffered copy, if there is one, may now be claimed."""
    heads: dict[int, int | None] = {}
    """Where the line of each priority begins, as far as it was asked for."""
    policy: Policy | None = None
    holds: dict[str, str] = {}
    """The strict groups that are to be paused, each with the id of its message that died."""

    def position(self, tx: Transaction, message: Message, return_to: ReturnTo, back: int, delay: int = 0) -> int:
        """Where a message goes that is no longer held; `back` is the moment that the back of the line means."""
        return_to = self._returned_to(return_to)
        if return_to == "back":
            return back + delay
        if return_to == "place":
            return max(message.position, tx.now + delay) if delay else message.position
        if message.priority not in self.heads:
            self.heads[message.priority] = tx.head_position(self.queue, message.priority)
        head = self.heads[message.priority]
        return (tx.now if head is None else min(head - 1, tx.now)) + delay

    def _returned_to(self, return_to: ReturnTo) -> ReturnTo:
        """A strict group keeps its order, and in a queue that hands out the last first its back is where others have their front."""
        if self.policy is not None and self.policy.groups == "strict":
            return "place"
        if self.policy is not None and self.policy.order == "lifo" and return_to != "place":
            return "front" if return_to == "back" else "back"
        return return_to

    def release(self, message: Message, position: int, ending: Ending, *, failed: bool) -> None:
        """Back in line, unless a buffered copy takes the place."""
        if message.key is not None and message.key in self.buffered:
            self.gone.append(message)
            self.keys.append(message.key)
        else:
            self.back.append(message.returned(position, failed=failed, ending=ending))

    def bury(self, tx: Transaction, message: Message, place: str | None, ending: Ending, *, failed: bool) -> None:
        if message.key is not None:
            self.keys.append(message.key)
        if self.policy is not None and self.policy.group_dead == "hold" and self.policy.groups == "strict" and message.lane is not None:
            self.holds[message.lane] = message.id
        if place is None or place == message.queue:
            self.dead.append(message.buried(tx.now, failed=failed, ending=ending))
        else:
            moved = message.dead_lettered(tx.now, place, tx.now + tx.wall_offset, failed=failed, ending=ending)
            self.moved.append(moved)
            self.moved_from.append(message)

    def rename_taken(self, tx: Transaction) -> None:
        """A dead letter whose id is taken where it goes gets one of its own, so that neither is lost."""
        for place, messages in by_queue(self.moved).items():
            taken = taken_ids(tx, place, [message.id for message in messages])
            number = 1
            while taken:
                number += 1
                names = {message_id: f"{message_id}~{number}" for message_id in taken}
                self.moved = [replace(m, id=names[m.id]) if m.queue == place and m.id in names else m for m in self.moved]
                taken = taken_ids(tx, place, list(names.values()))

    def write(self, tx: Transaction) -> list[Message]:
        """Carry it out; return the buffered copies that became ready."""
        # Now and not before: another command of the same step may just have taken the id.
        self.rename_taken(tx)
        tx.remove(self.gone)
        policies = {place: create_queue(tx, place).policy for place in by_queue(self.moved)}
        if self.policy is not None and self.policy.has_lanes:
            self.back = [lined(message, self.policy, tx.now) for message in self.back]
        if any(policies.values()):
            self.moved = [lined(message, policies[message.queue], tx.now) for message in self.moved]
        tx.save([*self.back, *self.dead, *self.moved])
        promoted = ready_copies(tx, self.queue, self.keys)
        resize(tx, self.queue, len(self.back) + len(promoted))
        for place, messages in by_queue(self.moved).items():
            resize(tx, place, len(messages))
        announce(tx, [*self.back, *promoted, *self.moved])
        self.entered = [*self.back, *promoted, *self.moved]
        if self.holds:
            hold_groups(tx, self.queue, self.holds)
        return promoted

    def drafts(self) -> list[Draft]:
        """The events that tell of burials, and of groups that are paused for them."""
        drafts = [event(self.queue, "buried", self.dead)] if self.dead else []
        for lane, message_id in self.holds.items():
            facts = {"group": lane, "paused": True, "because": "dead", "held": message_id}
            drafts.append(Draft(queue_topic(self.queue), "configured", facts))
        for place, messages in by_queue(self.moved).items():
            # By the ids and keys that they had here.
            before = [old for old, new in zip(self.moved_from, self.moved, strict=True) if new.queue == place]
            drafts += [event(self.queue, "buried", before, dead_letter=place), event(place, "put", messages)]
        return drafts


def plan_endings(tx: Transaction, queue: str, messages: Sequence[Message], policy: Policy | None) -> Endings:
    """An empty plan that knows which of the messages have a buffered copy behind them."""
    keys = [message.key for message in messages if message.key is not None]
    buffered = {m.key for m in tx.keyed(queue, keys) if m.state == "buffered" and m.key is not None} if keys else set[str]()
    return Endings(queue, buffered, policy=policy)


def bury_late(tx: Transaction, queue: str, late: Sequence[Message], policy: Policy, budget: Budget) -> Endings:
    """Bury messages that were not started in time, instead of dropping them."""
    endings = plan_endings(tx, queue, late, replace(policy, group_dead="pass"))
    for message in late:
        endings.bury(tx, message, budget.burial_place(message), message.ending(tx.now, "late"), failed=False)
    endings.write(tx)
    return endings


def create_queue(tx: Transaction, queue: str) -> Settings:
    """The queue's settings; the first write to a queue creates it."""
    settings = tx.settings("queue", queue)
    if settings is None:
        settings = Settings("queue", queue, created_at=tx.now)
        tx.save([settings])
    return settings


def taken_ids(tx: Transaction, queue: str, ids: Collection[str]) -> set[str]:
    """Those of `ids` under which the queue has a message, in whatever state."""
    return {message.id for message in tx.messages(queue, ids)}


def resize(tx: Transaction, queue: str, delta: int) -> None:
    """Keep count of the ready messages of a bounded queue."""
    settings = tx.settings("queue", queue) if delta else None
    if settings is not None and settings.maxsize is not None:
        tx.save([replace(settings, size=settings.size + delta)])
    if delta < 0:
        tx.hints.wake(room_topic(queue), -delta)


def promote(tx: Transaction, queue: str, messages: Iterable[Message]) -> None:
    """Let the buffered copies behind these messages, which are gone or may be, take their place."""
    promote_keys(tx, queue, [message.key for message in messages if message.key is not None])


def promote_keys(tx: Transaction, queue: str, keys: Sequence[str]) -> None:
    """Let the buffered copies under these keys be claimed, where no other message of the key is alive."""
    promoted = ready_copies(tx, queue, keys)
    if promoted:
        resize(tx, queue, len(promoted))
        announce(tx, promoted)
        follow(tx, (), promoted)


def ready_copies(tx: Transaction, queue: str, keys: Collection[str]) -> list[Message]:
    """Make the buffered copy under each key ready where no other message of the key is alive; answer those, without values."""
    found = tx.keyed(queue, keys) if keys else []
    living = {message.key for message in found if message.state != "buffered"}
    ready = [message.promoted() for message in found if message.state == "buffered" and message.key not in living]
    if any(message.lane is not None for message in ready):
        settings = tx.settings("queue", queue)
        ready = [lined(message, None if settings is None else settings.policy, tx.now) for message in ready]
    if ready:
        tx.save(ready)
    return ready


def announce(tx: Transaction, messages: Iterable[Message]) -> None:
    """Wake those who wait for what became ready, now or later."""
    messages = list(messages)
    # Whoever stands in a lane may be claimed once that is open, which `follow` tells.
    for queue, count in Counter(message.queue for message in messages if message.rank is None).items():
        tx.hints.wake(queue_topic(queue), count)
    for message in messages:
        if message.key is not None:
            tx.hints.wake(key_topic(message.queue, message.key), 1)


def event(queue: str, name: str, messages: Sequence[Message], **more: object) -> Draft:
    """An event of a queue: ids and keys, never values."""
    groups = [message.group for message in messages]
    if groups.count(None) != len(groups):
        more = {"groups": groups, **more}
    return Draft(queue_topic(queue), name, told([message.id for message in messages], [message.key for message in messages], more))


def told(ids: Sequence[str], keys: Sequence[Hashable], more: Mapping[str, object]) -> Mapping[str, object]:
    """What an event of a queue says about messages."""
    facts: dict[str, object] = {"ids": ids}
    # A list, because the end of a generator that is left early swallows an interrupt.
    if [key for key in keys if key is not None]:
        facts["keys"] = keys
    facts.update(more)
    return facts


def by_queue(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """The messages of each queue, in the order given."""
    groups: dict[str, list[Message]] = {}
    for message in messages:
        groups.setdefault(message.queue, []).append(message)
    return groups


def hold_groups(tx: Transaction, queue: str, holds: Mapping[str, str]) -> None:
    """Pause strict groups whose message died, until it is redriven or removed, or they are resumed."""
    lanes = tx.lanes(queue, holds)
    held = [lanes.get(name) or Lane(queue, name) for name in holds]
    tx.save([replace(lane, own=replace(lane.own, paused=True, held=holds[lane.name])) for lane in held])


def resume_groups(tx: Transaction, queue: str, messages: Iterable[Message]) -> list[Draft]:
    """Resume the groups that were paused for these messages; the events that tell of it."""
    dead = [message for message in messages if message.state == "dead" and message.lane is not None]
    ids, names = {message.id for message in dead}, {message.lane for message in dead if message.lane is not None}
    lanes = [lane for lane in tx.lanes(queue, names).values() if lane.own.held in ids] if names else []
    if not lanes:
        return []
    tx.save([replace(lane, own=replace(lane.own, paused=False, held=None)) for lane in lanes])
    return [Draft(queue_topic(queue), "configured", {"group": lane.name, "paused": False}) for lane in lanes]
