"""Reading the log of events, and keeping it short."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct

from holdfast.codec import Limits, check_batch
from holdfast.codec.fields import AFTER, DONE, KEEP, KEEP_S, LIMIT, Field, check_fields
from holdfast.commands.command import Command
from holdfast.commands.history import forget_all_done
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.refusal_errors import compacted
from holdfast.commands.topics import check_topic, dict_topic
from holdfast.commands.transaction import Draft, Transaction
from holdfast.records import Entry, Event, moment_in

OLDEST = -1
"""As `after`: begin with the oldest event that is still there."""

RETAINED = 100_000
RETAINED_S = 86_400.0
RETRY_S = 120.0
"""Events and answers younger than this are never dropped: a client may still repeat a command."""


class Page(Struct, frozen=True, gc=False):
    """Events in order, and the number to go on from, which may be past the last of them; where it is below `latest` there may be more."""

    events: list[Event]
    upto: int
    latest: int
    """The newest event's number, of whatever topic."""


class Changes(Command[Page], frozen=True):
    """What happened on a topic after an event number."""

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Page
    checked: ClassVar[tuple[Field, ...]] = (AFTER, LIMIT)

    topic: str
    after: int = OLDEST
    limit: int = 1_000

    def __post_init__(self) -> None:
        check_topic(self.topic)
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        return renamed(self, topic=names.topic(self.topic, self.verb))

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit, 0, limits)

    def check(self, tx: Transaction) -> Page:
        found, latest = tx.changes(self.topic, self.after, self.limit), tx.latest()
        if self.after != OLDEST and (self.after < found.floor or self.after > latest or found.was_skipped):
            raise compacted(self.topic, self.after, found.floor, latest)
        return Page(found.events, found.upto, latest)

    def write(self, tx: Transaction, plan: Page) -> Page:
        del tx
        return plan


class Prune(Command[int], frozen=True):
    """Drop old events, entries past their time and answers that can no longer be asked for; the stores do a little of it by themselves."""

    verb: ClassVar[Verb] = "admin"
    answer_type: ClassVar[Any] = int
    checked: ClassVar[tuple[Field, ...]] = (KEEP, KEEP_S, LIMIT, DONE)

    keep: int = RETAINED
    keep_s: float = RETAINED_S
    limit: int = 10_000
    done: bool = True
    """Whether finished messages go, too, that were kept as long as the policy of their queue says."""

    def __post_init__(self) -> None:
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        names.whole("log")
        return self

    def check(self, tx: Transaction) -> None:
        """Nothing can refuse it."""

    def write(self, tx: Transaction, plan: None) -> int:
        del plan
        never_after = tx.now - moment_in(RETRY_S)
        pruned = tx.prune(self.keep, tx.now - moment_in(self.keep_s), never_after, self.limit)
        outdated = tx.outdated(self.limit, done=self.done)
        return pruned + _expire(tx, outdated.entries) + forget_all_done(tx, outdated.queues, self.limit)


def _expire(tx: Transaction, entries: Sequence[Entry]) -> int:
    """Remove entries past their time; watchers learn of it."""
    if entries:
        tx.append([Draft(dict_topic(entry.dict), "expired", {"key": entry.key}) for entry in entries])
        tx.save([entry.deleted() for entry in entries])
    return len(entries)
