"""Commands that move all data to another store: reading the source, and importing into the target.

The pages themselves are read with `Names`, `Browse` and `Read`, as by any client. The target works out once how the two stores' clocks and
counters relate and keeps that beside how far the copy has come, so an interrupted copy goes on as it began. The copying client changes the
records accordingly, and the target takes them in as they come.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from holdfast.codec import Limits, check_batch
from holdfast.codec.fields import LOST, MERGE, SEALED_AT, SOURCE, TARGET_AT, Field, check_fields, place_text
from holdfast.commands.command import Command, Resource
from holdfast.commands.dicts import living
from holdfast.commands.endings import by_queue, resize, taken_ids
from holdfast.commands.imported import SURVEYED, check_records
from holdfast.commands.names import Renamer, Verb, all_renamed, later, renamed
from holdfast.commands.rebuilding import take_in, take_in_lanes
from holdfast.commands.refusal_errors import both_have, no_copy, not_empty, other_copy, other_place, written_meanwhile
from holdfast.commands.surveying import Surveyed, held_leases
from holdfast.commands.transaction import Fenced, Transaction
from holdfast.records import NEVER, NO_VALUE, Ending, Entry, Message
from holdfast.records.policies import Lane, Settings


class Copying(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the target of a copy remembers until the copy is complete."""

    source: str
    """What is copied: its name, and behind an @ the number of its newest event."""
    offset: int
    """What to add to a moment of the source: the due moment of a delayed message is as far ahead as it was."""
    base: int = 0
    """What to add to the numbers that order messages of one position."""
    place: str = ""
    """How far the copy has come, in the words of the copying client."""
    messages: int = 0
    entries: int = 0
    checksum: str = ""
    """Of all that came so far, as it is here."""

    def message(self, message: Message) -> Message:
        """The message as it will be in the target."""
        return replace(
            message,
            n=message.n + self.base,
            position=message.position + self.offset,
            start_by=self._moment(message.start_by),
            created_at=message.created_at + self.offset,
            since=message.since + self.offset if message.token else 0,
            until=message.until + self.offset if message.token and message.until < NEVER else message.until,
            dead_at=self._moment(message.dead_at),
            ended_at=self._moment(message.ended_at),
            rank=self._moment(message.rank),
            tied=0,
            history=tuple(self._ending(ending) for ending in message.history),
        )

    def entry(self, entry: Entry) -> Entry:
        """The entry as it will be in the target."""
        return replace(entry, expires_at=self._moment(entry.expires_at))

    def settings(self, settings: Settings) -> Settings:
        """The settings as they will be in the target; messages are counted as they come."""
        return replace(
            settings,
            size=0,
            created_at=settings.created_at + self.offset,
            live=0,
            tat=self._ahead(settings.tat),
            last=0,
            throttled_until=self._ahead(settings.throttled_until),
        )

    def lane(self, lane: Lane) -> Lane:
        """What a group has of its own, as it will be in the target; the rest follows from its messages."""
        tat, until = self._ahead(lane.tat), self._ahead(lane.throttled_until)
        return Lane(lane.queue, lane.name, tat=tat, throttled_until=until, own=lane.own)

    def _ahead(self, moment: int) -> int:
        return moment + self.offset if moment else 0

    def _ending(self, ending: Ending) -> Ending:
        return replace(ending, since=ending.since + self.offset, until=ending.until + self.offset)

    def _moment(self, moment: int | None) -> int | None:
        return None if moment is None else moment + self.offset


class BeginImport(Command[Copying], frozen=True):
    """Make the store the target of a copy, or go on with one that was interrupted.

    From now on its tokens are above all of the source's, and watches of either store are told to start again.
    """

    verb: ClassVar[Verb] = "admin"
    answer_type: ClassVar[Any] = Copying
    checked: ClassVar[tuple[Field, ...]] = (SOURCE, MERGE, LOST)

    source: str
    survey: Surveyed
    merge: bool = False
    """Into what is there already; else the target must be empty."""
    lost: bool = False
    """Whether the numbers up to the survey's were given out here and then lost with the data: no fence is let in that is one of them."""

    def __post_init__(self) -> None:
        check_fields(self, self.checked)
        check_fields(self.survey, SURVEYED)

    def named(self, names: Renamer) -> Self:
        names.whole("copy")
        return self

    def check(self, tx: Transaction) -> tuple[Copying, bool]:
        running = tx.copying()
        if running is not None and running.source == self.source:
            return running, False
        if running is not None:
            raise other_copy(running.source, self.source)
        is_empty = not (tx.names("queue", "", None, 1) or tx.names("dict", "", None, 1) or held_leases(tx, 1))
        if not is_empty and not self.merge:
            raise not_empty()
        offset = tx.now - self.survey.now
        return Copying(self.source, offset, 0 if is_empty else tx.next_n()), True

    def write(self, tx: Transaction, plan: tuple[Copying, bool]) -> Copying:
        copying, is_new = plan
        if is_new:
            tx.raise_numbers(self.survey.latest + 1, copying.base + self.survey.next_n, lost=self.lost)
            tx.save_copying(copying)
        return copying


class Import(Command[Copying], frozen=True):
    """Take a page of a copy in, as it is to be here; a page that came before changes nothing."""

    verb: ClassVar[Verb] = "admin"
    answer_type: ClassVar[Any] = Copying

    checked: ClassVar[tuple[Field, ...]] = (SOURCE, place_text("after"), place_text("place"), place_text("checksum"))

    source: str
    after: str
    """The place of the page before this one."""
    place: str
    checksum: str
    """Of everything up to this page, which the copying client keeps here in case of an interruption."""
    settings: Sequence[Settings] = ()
    messages: Sequence[Message] = ()
    fences: Sequence[Fenced] = ()
    entries: Sequence[Entry] = ()
    lanes: Sequence[Lane] = ()
    """Groups with settings, a rate or a throttle of their own."""

    def __post_init__(self) -> None:
        check_fields(self, self.checked)
        for records in (self.settings, self.messages, self.fences, self.entries, self.lanes):
            check_records(records)

    def named(self, names: Renamer) -> Self:
        names.whole("copy")
        settings = [_renamed_settings(one, names, self.verb) for one in self.settings]
        messages = [
            renamed(one, queue=names.object("queue", one.queue, self.verb), dead_letter=later(names, one.dead_letter))
            for one in self.messages
        ]
        fences = [renamed(one, dict=names.object("dict", one.dict, self.verb)) for one in self.fences]
        entries = [renamed(one, dict=names.object("dict", one.dict, self.verb)) for one in self.entries]
        lanes = [renamed(one, queue=names.object("queue", one.queue, self.verb)) for one in self.lanes]
        return renamed(
            self,
            settings=all_renamed(self.settings, settings),
            messages=all_renamed(self.messages, messages),
            fences=all_renamed(self.fences, fences),
            entries=all_renamed(self.entries, entries),
            lanes=all_renamed(self.lanes, lanes),
        )

    def measure(self, limits: Limits) -> int:
        count = len(self.settings) + len(self.messages) + len(self.fences) + len(self.entries) + len(self.lanes)
        values = [*(message.value for message in self.messages), *(entry.value for entry in self.entries)]
        return check_batch(count, sum(len(memoryview(value)) for value in values), limits)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield ("copy",), True

    def check(self, tx: Transaction) -> Copying | None:
        running = tx.copying()
        if running is None or running.source != self.source:
            raise no_copy(self.source)
        if running.place == self.place:
            return None
        if running.place != self.after:
            raise other_place(self.source, running.place, self.after)
        self._refuse_taken(tx)
        return running

    def _refuse_taken(self, tx: Transaction) -> None:
        """Refuse what is here already; only where the copy is merged with something can anything be."""
        for queue, messages in by_queue(self.messages).items():
            taken = taken_ids(tx, queue, [message.id for message in messages])
            if taken:
                raise both_have(f"message {min(taken)} of queue {queue!r}")
            keys = {
                (message.key, message.state == "buffered") for message in messages if message.key and message.state not in ("dead", "done")
            }
            for other in tx.keyed(queue, {key for key, _ in keys}) if keys else ():
                if (other.key, other.state == "buffered") in keys:
                    raise both_have(f"key {other.key} of queue {queue!r}")
        for name, entries in by_dict(self.entries).items():
            there = living(tx, name, [entry.key for entry in entries])
            if there:
                raise both_have(f"key {min(there)} of dict {name!r}")

    def write(self, tx: Transaction, plan: Copying | None) -> Copying:
        if plan is None:
            return tx.copying() or Copying(self.source, 0)
        for settings in self.settings:
            if tx.settings(settings.kind, settings.name) is None:
                tx.save([settings])
        take_in_lanes(tx, self.lanes)
        for queue, messages in by_queue(self.messages).items():
            take_in(tx, queue, messages)
            resize(tx, queue, sum(message.state == "ready" for message in messages))
        self._raise_fences(tx)
        for name, entries in by_dict(self.entries).items():
            known = tx.entries(name, [entry.key for entry in entries])
            tx.save([replace(one, fence=max(one.fence, known[one.key].fence)) if one.key in known else one for one in entries])
        copying = replace(
            plan,
            place=self.place,
            checksum=self.checksum,
            messages=plan.messages + len(self.messages),
            entries=plan.entries + len(self.entries),
        )
        tx.save_copying(copying)
        return copying

    def _raise_fences(self, tx: Transaction) -> None:
        fences: dict[str, dict[str, int]] = {}
        for one in self.fences:
            fences.setdefault(one.dict, {})[one.key] = one.fence
        for name, raised in fences.items():
            known = tx.entries(name, list(raised))
            before = [known.get(key) or Entry(name, key, NO_VALUE, 0) for key in raised]
            tx.save([replace(entry, fence=max(entry.fence, raised[entry.key])) for entry in before])


class EndImport(Command[Copying | None], frozen=True):
    """Make the store one as any other, and return what it remembered of the copy; None where none is under way."""

    verb: ClassVar[Verb] = "admin"
    answer_type: ClassVar[Any] = Copying | None

    def named(self, names: Renamer) -> Self:
        names.whole("copy")
        return self

    def check(self, tx: Transaction) -> Copying | None:
        return tx.copying()

    def write(self, tx: Transaction, plan: Copying | None) -> Copying | None:
        if plan is not None:
            tx.save_copying(None)
        return plan


class Seal(Command[None], frozen=True):
    """Mark the store as moved: from now on every process that has it open or opens it gets `StoreMoved`, with the new URL."""

    verb: ClassVar[Verb] = "admin"
    checked: ClassVar[tuple[Field, ...]] = (place_text("to"), SEALED_AT, TARGET_AT)

    to: str
    """Without a password."""
    at: int
    """The newest event's number when the copy began: refused if it is another now."""
    target_at: int | None = None
    """The newest event's number of the target when it was complete, by which undoing the copy finds out whether the target was used since;
    None for a target that has more in it than the copy."""

    def __post_init__(self) -> None:
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        names.whole("copy")
        return self

    def check(self, tx: Transaction) -> None:
        if tx.latest() != self.at:
            raise written_meanwhile()

    def write(self, tx: Transaction, plan: None) -> None:
        del plan
        tx.seal(self.to, self.target_at)


def _renamed_settings(settings: Settings, names: Renamer, verb: Verb) -> Settings:
    policy = settings.policy
    if policy is not None:
        policy = renamed(policy, dead_letter=later(names, policy.dead_letter))
    return renamed(settings, name=names.object(settings.kind, settings.name, verb), policy=policy)


def by_dict(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The entries of each dict, in the order given."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.dict, []).append(entry)
    return groups
