"""Administration of messages that are not held: browse, count, redrive, cancel, bury, prune."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, Self

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from holdfast.codec import Limits, check_batch, check_name, keepable
from holdfast.codec.fields import (
    DELAY_S,
    IDS,
    KEYS,
    LIMIT,
    PRIORITY,
    SPACING_S,
    Field,
    Row,
    Whole,
    check_fields,
    key_text,
    moment,
    number,
)
from holdfast.commands.argument_checks import STATES, check_choice
from holdfast.commands.claim_line import with_values
from holdfast.commands.command import COUNTED, Command, Resource
from holdfast.commands.endings import Endings, announce, create_queue, event, promote, resize, resume_groups, taken_ids
from holdfast.commands.filtered import EVERY, LOOKED_AT, Walk, chosen, page_of
from holdfast.commands.lanes import follow, lined, unlined
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.stats import Place, Stats, tally_of
from holdfast.commands.transaction import Cursor, Draft, Filter, Transaction
from holdfast.records import ERROR_CHARACTERS, Message, State, moment_in

Taken = Literal["key", "id"]

MOVES = ("ready", "dead", "gone", "due")

_MOMENT, _N = moment("after"), number("after")
CURSORS: dict[State, Field] = {
    "ready": Row("after", (Whole("after", -PRIORITY.most, -PRIORITY.least), _MOMENT, _N)),
    "leased": Row("after", (_MOMENT, _N)),
    "dead": Row("after", (_MOMENT, _N)),
    "buffered": Row("after", (key_text("after"), _N)),
    "done": Row("after", (_MOMENT, _N)),
}
"""What `cursor` makes of a message in each state."""


class Browsed(Struct, frozen=True, gc=False, omit_defaults=True):
    """Messages, where to go on, the newest event's number at that moment, and the moment."""

    messages: list[Message]
    after: Cursor | None = None
    index: int = 0
    now: int = 0
    more: bool = False
    """Whether there are more of those asked for by id or key than one answer can bring: ask for the ones behind the last."""

    @property
    def living(self) -> list[Message]:
        """The messages without those that are done and kept for a while: nothing becomes of these any more."""
        return [message for message in self.messages if message.state != "done"]


class Browse(Command[Browsed], frozen=True):
    """Look at messages without touching them: by id, by key, or all of one state in its own order, page by page."""

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Browsed
    checked: ClassVar[tuple[Field, ...]] = (IDS, LIMIT, KEYS)

    queue: str
    ids: Sequence[str] | None = None
    state: State = "ready"
    which: Filter = Filter()
    after: Cursor | None = None
    limit: int = 100
    keys: Sequence[str] | None = None
    """The living messages under these keys, each before the copy that waits behind it."""

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        check_choice(self.state, STATES, "state")
        check_fields(self, self.checked)
        if self.after is not None:
            force_setattr(self, "after", CURSORS[self.state].check(self.after))
        if self.ids is not None and self.keys is not None:
            raise ValueError("give ids or keys, not both")

    def named(self, names: Renamer) -> Self:
        return renamed(self, queue=names.object("queue", self.queue, self.verb))

    def measure(self, limits: Limits) -> int:
        named = self.ids if self.keys is None else self.keys
        return walked(self.limit, self.which, limits) if named is None else check_batch(len(named), 0, limits)

    def check(self, tx: Transaction) -> Browsed:
        if self.ids is not None:
            return self._named(tx, tx.messages(self.queue, self.ids, values=True))
        if self.keys is not None:
            return self._named(tx, self._keyed(tx, self.keys))
        page, after = page_of(tx, self)
        return Browsed(page, after, tx.latest(), tx.now)

    def _named(self, tx: Transaction, messages: Iterable[Message]) -> Browsed:
        found = tx.allowance.fitting(messages)
        return Browsed(found, None, tx.latest(), tx.now, tx.allowance.is_cut)

    def _keyed(self, tx: Transaction, keys: Sequence[str]) -> Iterator[Message]:
        found = {(message.key, message.state == "buffered"): message for message in tx.keyed(self.queue, keys)}
        asked = [(key, is_copy) for key in dict.fromkeys(keys) for is_copy in (False, True)]
        return with_values(tx, self.queue, [found[one] for one in asked if one in found])

    def write(self, tx: Transaction, plan: Browsed) -> Browsed:
        del tx
        return plan


def walked(limit: int, which: Filter, limits: Limits) -> int:
    """What a page of one state counts for: to find what a filter leaves, so many are looked at."""
    return check_batch(limit if which == EVERY else max(limit, LOOKED_AT), 0, limits)


class Count(Command[Stats], frozen=True):
    """Sizes, ages and holders of a queue. A message whose lease has ended counts as ready.

    With a filter at most 1,000 messages are looked at: `Stats.after` is where to go on.
    """

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Stats

    queue: str
    which: Filter = Filter()
    after: Place | None = None
    """Where to go on counting what a filter finds."""

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        if self.after is not None:
            check_choice(self.after.state, STATES, "the state of after")
            force_setattr(self, "after", replace(self.after, cursor=CURSORS[self.after.state].check(self.after.cursor)))

    def named(self, names: Renamer) -> Self:
        return renamed(self, queue=names.object("queue", self.queue, self.verb))

    def measure(self, limits: Limits) -> int:
        del limits
        return COUNTED

    def check(self, tx: Transaction) -> Stats:
        if self.which == EVERY:
            return tx.tally(self.queue).stats(tx.now)
        # Stores keep no counts of what a filter finds.
        walk = Walk(tx, self.queue, self.which)
        tally = tally_of(walk.found_behind(self.after), tx.now)
        return tally.stats(tx.now, walk.place)

    def write(self, tx: Transaction, plan: Stats) -> Stats:
        del tx
        return plan


class Moved(Struct, frozen=True, gc=False, omit_defaults=True):
    """The messages that were moved, and those that a redrive left where they are."""

    ids: list[str]
    kept: dict[str, Taken] = {}
    """By id what was taken where they would have gone: their `key` by another message, or their `id`."""
    after: Cursor | None = None
    """Where to go on, where there may be more of those that were not named by their ids."""


class Move(Command[Moved], frozen=True):
    """Redrive (`ready`), bury (`dead`) or remove (`gone`) messages, by id or by state and filter; claimed ones stay.

    With a filter at most 1,000 messages are looked at: `Moved.after` is where to go on.

    A redrive leaves a message where it is while another one of its key is alive there. `due` ends the delay of ready messages, named by
    their ids, and changes nothing else of them; all others stay as they are.
    """

    verb: ClassVar[Verb] = "manage"
    answer_type: ClassVar[Any] = Moved
    checked: ClassVar[tuple[Field, ...]] = (IDS, LIMIT, DELAY_S, SPACING_S)

    queue: str
    to: Literal["ready", "dead", "gone", "due"]
    ids: Sequence[str] | None = None
    state: State = "dead"
    which: Filter = Filter()
    limit: int = 1_000
    to_queue: str | None = None
    """Redrive into another queue: what a dead-letter queue's messages want."""
    delay_s: float = 0.0
    spacing_s: float = 0.0
    """So much later each than the one before: a redrive at a rate."""
    error: str | None = None
    after: Cursor | None = None

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        check_choice(self.to, MOVES, "to")
        check_choice(self.state, STATES, "state")
        check_fields(self, self.checked)
        if self.after is not None:
            force_setattr(self, "after", CURSORS[self.state].check(self.after))
        if self.to_queue is not None:
            check_name(self.to_queue, "queue")
            if self.to != "ready":
                message = f"to_queue goes with to='ready', not {self.to!r}"
                raise ValueError(message)
        if self.to == "due" and self.ids is None:
            raise ValueError("to='due' is about messages by their ids: give ids, too")
        if self.error is not None:
            force_setattr(self, "error", keepable(self.error[:ERROR_CHARACTERS]))

    def named(self, names: Renamer) -> Self:
        to_queue = None if self.to_queue is None else names.object("queue", self.to_queue, "put")
        verb: Verb = "signal" if self.to == "due" else self.verb
        return renamed(self, queue=names.object("queue", self.queue, verb), to_queue=to_queue)

    def measure(self, limits: Limits) -> int:
        return walked(self.limit, self.which, limits) if self.ids is None else check_batch(len(self.ids), 0, limits)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        if self.to == "due":
            yield ("queue", self.queue), False
            for message_id in self.ids or ():
                yield ("message", self.queue, message_id), True
            return
        for queue in {self.queue, self.to_queue or self.queue}:
            yield ("queue", queue), False
            yield ("line", queue), True

    def check(self, tx: Transaction) -> "MovePlan":
        if self.to == "due":
            named = tx.messages(self.queue, list(dict.fromkeys(self.ids or ())))
            return MovePlan([message for message in named if message.state == "ready" and message.position > tx.now])
        if self.ids is not None:
            return self._plan(tx, tx.messages(self.queue, list(dict.fromkeys(self.ids)), values=True))
        found, place = chosen(tx, self)
        plan = self._plan(tx, found)
        plan.place = place
        return plan

    def _plan(self, tx: Transaction, found: Iterable[Message]) -> "MovePlan":
        free = [message for message in found if not message.held_at(tx.now)]
        if self.to == "gone":
            return MovePlan(free)
        if self.to == "ready":
            return self._redrive(tx, [message for message in free if message.state != "buffered"])
        alive = [message for message in free if message.state in ("ready", "leased")]
        settings = tx.settings("queue", self.queue)
        # Nobody is paused for what an administrator buries.
        policy = None if settings is None or settings.policy is None else replace(settings.policy, group_dead="pass")
        endings = Endings(self.queue, policy=policy)
        for message in alive:
            endings.bury(tx, message, message.dead_letter, message.ending(tx.now, "buried", self.error), failed=False)
        return MovePlan(alive, endings=endings)

    def _redrive(self, tx: Transaction, messages: list[Message]) -> "MovePlan":
        target = self.to_queue or self.queue
        taken = taken_ids(tx, target, [message.id for message in messages]) if target != self.queue else set[str]()
        keys = {message.key for message in messages if message.key is not None}
        living = {m.key: m.id for m in tx.keyed(target, keys) if m.state != "buffered"} if keys else {}
        plan = MovePlan([])
        for message in messages:
            if message.id in taken:
                plan.kept[message.id] = "id"
            elif message.key is not None and living.setdefault(message.key, message.id) != message.id:
                # Behind newer work it would take its place when that is released or fails: newer work is never lost to older.
                plan.kept[message.id] = "key"
            else:
                position = tx.now + moment_in(self.delay_s) + moment_in(self.spacing_s) * len(plan.after)
                plan.messages.append(message)
                plan.after.append((message if target == self.queue else unlined(message)).redriven(position, target))
        return plan

    def write(self, tx: Transaction, plan: "MovePlan") -> Moved:
        if not plan.messages:
            return Moved([], plan.kept, plan.place)
        drafts = [event(self.queue, "moved", plan.messages, to=self.to)]
        was_ready = sum(message.state == "ready" for message in plan.messages)
        entered: list[Message] = []
        if self.to == "gone":
            tx.remove(plan.messages)
            resize(tx, self.queue, -was_ready)
            drafts += resume_groups(tx, self.queue, plan.messages)
            promote(tx, self.queue, plan.messages)
        elif self.to == "due":
            # As they are by now: another command of the same step may have changed their metadata.
            delayed = tx.messages(self.queue, [message.id for message in plan.messages])
            policy = create_queue(tx, self.queue).policy
            entered = [lined(replace(message, position=tx.now), policy, tx.now) for message in delayed]
            tx.save(entered)
            announce(tx, entered)
        elif self.to == "ready":
            drafts += resume_groups(tx, self.queue, plan.messages)
            policy = create_queue(tx, self.to_queue or self.queue).policy
            entered = [lined(message, policy, tx.now) for message in plan.after]
            drafts += self._write_redrive(tx, entered, was_ready)
        elif plan.endings is not None:
            resize(tx, self.queue, -was_ready)
            plan.endings.write(tx)
            entered = plan.endings.entered
            drafts += plan.endings.drafts()
        tx.append(drafts)
        follow(tx, plan.messages, entered)
        return Moved([message.id for message in plan.messages], plan.kept, plan.place)

    def _write_redrive(self, tx: Transaction, messages: list[Message], was_ready: int) -> list[Draft]:
        target = self.to_queue or self.queue
        tx.save(messages)
        resize(tx, self.queue, -was_ready)
        resize(tx, target, len(messages))
        announce(tx, messages)
        return [event(target, "put", messages)] if target != self.queue else []


class MovePlan(Struct):
    """The messages to move, and what they will be."""

    messages: list[Message]
    after: list[Message] = []
    kept: dict[str, Taken] = {}
    endings: Endings | None = None
    place: Cursor | None = None
