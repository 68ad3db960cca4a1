"""Reading and writing the entries of a dict."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Self

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from holdfast.codec import Limits, check_batch, check_name, check_value_size
from holdfast.codec.fields import (
    AFTER_KEY,
    ALL_OR_NONE,
    ANCHOR,
    BY,
    KEYS,
    LIMIT,
    PREFIX,
    Field,
    check_fields,
)
from holdfast.commands.change import NULL, Change, Written
from holdfast.commands.command import COUNTED, Command, Resource, as_a_whole
from holdfast.commands.names import Renamer, Verb, renamed
from holdfast.commands.plain import is_plain
from holdfast.commands.refusal_errors import fence_lost, fence_too_high, no_number, no_rate, not_written, out_of_range
from holdfast.commands.topics import dict_topic
from holdfast.commands.transaction import Draft, Transaction
from holdfast.records import NO_VALUE, Entry, Lease, moment_in, seconds_in
from holdfast.records.policies import Settings

FEW = 50
"""How many entries that were asked for by key are read at once."""


class Entries(Struct, frozen=True, gc=False, omit_defaults=True):
    """Entries found, in order of key text, and the newest event's number at that moment."""

    entries: list[Entry]
    index: int = 0
    more: bool = False
    """Whether there are more than the limit, or than one answer can bring: read on `after` the last key, or the keys behind it."""


class Read(Command[Entries], frozen=True):
    """Look entries up by key, or in order of their key text by prefix, page by page."""

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = Entries
    checked: ClassVar[tuple[Field, ...]] = (KEYS, PREFIX, AFTER_KEY, LIMIT, ANCHOR)

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "dict", "keys", "prefix", "after", "limit")

    dict: str
    keys: Sequence[str] | None = None
    prefix: str = ""
    after: str | None = None
    limit: int = 10_000
    anchor: bool = False
    """Whether a watch goes on from the answer's index: where writers do not take turns, it is exact only then."""

    def __post_init__(self) -> None:
        check_name(self.dict, "dict")
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        return renamed(self, dict=names.object("dict", self.dict, self.verb))

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit if self.keys is None else len(self.keys), 0, limits)

    def plain(self, *also: str) -> bool:
        """Whether it looks entries up by key."""
        return self.keys is not None and is_plain(self, also)

    def check(self, tx: Transaction) -> Entries:
        if self.keys is not None:
            found = tx.allowance.fitting(self._named(tx, self.keys))
            return Entries(found, tx.latest(), tx.allowance.is_cut)
        page = tx.scan(self.dict, self.prefix, self.after, self.limit + 1)
        found = tx.allowance.fitting(islice(page, self.limit))
        return Entries(found, tx.latest(), tx.allowance.is_cut or next(page, None) is not None)

    def _named(self, tx: Transaction, keys: Sequence[str]) -> Iterator[Entry]:
        """The entries under the keys, in this order, a few read at a time."""
        now = tx.now
        for start in range(0, len(keys), FEW):
            few = keys[start : start + FEW]
            found = tx.entries(self.dict, few)
            yield from (entry for key in few if (entry := found.get(key)) is not None and entry.is_there(now))

    def write(self, tx: Transaction, plan: Entries) -> Entries:
        del tx
        return plan


class Length(Command[int], frozen=True):
    """How many entries a dict has."""

    verb: ClassVar[Verb] = "read"
    reads_only: ClassVar[bool] = True
    answer_type: ClassVar[Any] = int

    dict: str

    def __post_init__(self) -> None:
        check_name(self.dict, "dict")

    def named(self, names: Renamer) -> Self:
        return renamed(self, dict=names.object("dict", self.dict, self.verb))

    def measure(self, limits: Limits) -> int:
        del limits
        return COUNTED

    def check(self, tx: Transaction) -> int:
        return tx.length(self.dict)

    def write(self, tx: Transaction, plan: int) -> int:
        del tx
        return plan


class Write(Command[list[Written]], frozen=True):
    """Change entries of a dict, each on its own conditions."""

    verb: ClassVar[Verb] = "write"
    answer_type: ClassVar[Any] = list[Written]
    checked: ClassVar[tuple[Field, ...]] = (ALL_OR_NONE,)

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "dict", "changes")

    dict: str
    changes: Sequence[Change]
    all_or_none: bool = False

    def __post_init__(self) -> None:
        check_name(self.dict, "dict")
        check_fields(self, self.checked)
        if len({change.key for change in self.changes}) < len(self.changes):
            message = f"one write to dict {self.dict!r} changes a key twice: use two writes"
            raise ValueError(message)

    def named(self, names: Renamer) -> Self:
        return renamed(self, dict=names.object("dict", self.dict, self.verb))

    def measure(self, limits: Limits) -> int:
        sizes = [check_value_size(change.value, limits) for change in self.changes if change.value]
        sizes += [check_value_size(change.expected, limits, "expected") for change in self.changes if change.expected]
        return check_batch(len(self.changes), sum(sizes), limits)

    def plain(self, *also: str) -> bool:
        """Whether it changes one entry."""
        return len(self.changes) == 1 and is_plain(self.changes[0], ()) and is_plain(self, also)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield ("dict", self.dict), False
        for change in self.changes:
            yield ("entry", self.dict, change.key), True
            if change.lease is not None:
                yield ("lease", self.dict, change.key), False

    def strictly(self) -> "Write":
        return as_a_whole(self)

    def check(self, tx: Transaction) -> "WritePlan":
        keys = [change.key for change in self.changes]
        known = tx.entries(self.dict, keys)
        self._refuse_foreign_fences(tx)
        named = [(self.dict, change.key) for change in self.changes if change.lease is not None]
        leases = tx.leases(named) if named else {}
        answers = [self._answer(tx, change, known.get(change.key), leases) for change in self.changes]
        if self.all_or_none:
            self._refuse(answers)
        tx.allowance.bring(answer.entry for answer in answers if answer.entry is not None)
        return WritePlan(tx.settings("dict", self.dict), answers, known)

    def _refuse_foreign_fences(self, tx: Transaction) -> None:
        """Refuse a change whose fence is not a token of this store: above all of them, or lost when a backup was restored."""
        fenced = {change.key: change.fence for change in self.changes if change.fence is not None}
        newest = tx.latest() if fenced else 0
        for key, fence in fenced.items():
            if fence > newest:
                raise fence_too_high(self.dict, key, fence, newest)
            if tx.was_skipped(fence):
                raise fence_lost(self.dict, key, fence)

    def _answer(
        self,
        tx: Transaction,
        change: Change,
        known: Entry | None,
        leases: Mapping[tuple[str | None, str], Lease],
    ) -> Written:
        """The change with its outcome; the revision of what will be written is not known yet."""
        entry = known if known is not None and known.is_there(tx.now) else None
        if change.lease is not None:
            lease = leases.get((self.dict, change.key))
            if lease is None or lease.lease_id != change.lease or not lease.held_at(tx.now):
                return Written(entry, because="lease")
        if change.fence is not None and known is not None and known.fence > change.fence:
            return Written(entry, because="fence")
        if not change.meets(entry):
            return Written(entry, because="compare")
        if change.do in ("delete", "compare"):
            return Written(entry)
        if change.do == "pace":
            return self._paced(change, known, entry, tx.now)
        expires_at = None if change.ttl_s is None else tx.now + moment_in(change.ttl_s)
        return Written(Entry(self.dict, change.key, self._value(change, entry), 0, fence_after(change, known), expires_at))

    def _paced(self, change: Change, known: Entry | None, entry: Entry | None, now: int) -> Written:
        if entry is not None and entry.expires_at is None:
            raise no_rate(self.dict, change.key)
        until = None if entry is None else entry.expires_at
        due_in = change.due_in(until, now)
        if due_in > 0:
            return Written(entry, "rate", seconds_in(due_in))
        return Written(Entry(self.dict, change.key, NULL, 0, fence_after(change, known), change.used_up_until(until, now)))

    def _value(self, change: Change, entry: Entry | None) -> Raw:
        if change.do == "put":
            return change.value or NULL
        number = json.decode(entry.value) if entry else 0
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise no_number(self.dict, change.key)
        try:
            return Raw(json.encode(BY.check(number + change.by)))
        except (ValueError, OverflowError):
            raise out_of_range(self.dict, change.key) from None

    def _refuse(self, answers: list[Written]) -> None:
        for change, answer in zip(self.changes, answers, strict=True):
            if not answer.written:
                raise not_written(self.dict, change.key, answer.because, change.lease, answer.due_in_s)

    def write(self, tx: Transaction, plan: "WritePlan") -> list[Written]:
        # Deleting what is absent and comparing change nothing, so they are no events.
        real = [self._is_change(change, answer) for change, answer in zip(self.changes, plan.answers, strict=True)]
        drafts = [
            self._draft(change, answer) for change, answer, is_change in zip(self.changes, plan.answers, real, strict=True) if is_change
        ]
        if plan.settings is None and drafts:
            tx.save([Settings("dict", self.dict, created_at=tx.now)])
        revision = tx.append(drafts) if drafts else 0
        answers, saved = [], list[Entry]()
        for change, answer, is_change in zip(self.changes, plan.answers, real, strict=True):
            if change.do == "delete" and answer.written and (is_change or change.fence is not None):
                # Under a fence even what is absent: a stale holder must not write it afterwards.
                saved.append(Entry(self.dict, change.key, NO_VALUE, 0, fence_after(change, plan.known.get(change.key))))
            elif is_change and answer.entry is not None:
                entry = replace(answer.entry, revision=revision)
                saved.append(entry)
                answer = replace(answer, entry=entry)  # noqa: PLW2901 - the same answer, now with its revision
            revision += is_change
            answers.append(answer)
        if saved:
            tx.save(saved)
        return answers

    def _is_change(self, change: Change, answer: Written) -> bool:
        return answer.written and change.do != "compare" and not (change.do == "delete" and answer.entry is None)

    def _draft(self, change: Change, answer: Written) -> Draft:
        if change.do == "delete" or answer.entry is None:
            return Draft(dict_topic(self.dict), "deleted", {"key": change.key})
        return Draft(dict_topic(self.dict), "written", {"key": change.key, "value": answer.entry.value})


class WritePlan(Struct):
    """The answers but for the revisions, and what was known of the keys."""

    settings: Settings | None
    answers: list[Written]
    known: Mapping[str, Entry]


def living(tx: Transaction, name: str, keys: Sequence[str]) -> dict[str, Entry]:
    """The entries under these keys that are there."""
    return {key: entry for key, entry in tx.entries(name, keys).items() if entry.is_there(tx.now)}


def fence_after(change: Change, known: Entry | None) -> int:
    """The fence of a key behind a change: the highest that wrote it."""
    return max(change.fence or 0, 0 if known is None else known.fence)
