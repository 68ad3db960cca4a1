"""Acquiring, renewing and releasing leases, for locks and elections."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final, Self, TypeVar

from msgspec import Struct, json
from msgspec.structs import replace

from holdfast.codec import Limits, check_batch, check_name, check_value_size
from holdfast.codec.fields import (
    ALL_OR_NONE,
    CAPACITY,
    HOLDER,
    IN_LINE_S,
    LEASE_S,
    MAX_WAITERS,
    WEIGHT,
    Field,
    check_fields,
    key_text,
    name_text,
)
from holdfast.codec.limits import is_short
from holdfast.commands.acquired import Acquired, ends_in_s
from holdfast.commands.argument_checks import check_key
from holdfast.commands.change import Change
from holdfast.commands.command import Command, Resource, as_a_whole
from holdfast.commands.dicts import Write, living
from holdfast.commands.names import Renamer, Verb, all_renamed, renamed
from holdfast.commands.plain import is_plain
from holdfast.commands.refusal_errors import lease_held, lease_lost, other_capacity
from holdfast.commands.shares import SharePlan, Swept, check_share, end_shares, recall_share, write_share
from holdfast.commands.topics import lease_topic, log_topic
from holdfast.commands.transaction import Draft, Transaction
from holdfast.records import Entry, Lease, MaybeRaw, end_of, seconds_in
from holdfast.records.shares import Share, Shared

R = TypeVar("R")

ONE: Final = 1

PLAIN: Final[tuple[Field, ...]] = (HOLDER, LEASE_S, ALL_OR_NONE)
"""The fields of a plain `Acquire`."""


class LeaseName(Struct, frozen=True, gc=False, array_like=True):
    """Names one grant of a lease: no other grant on the key, earlier or later, has the same."""

    checked: ClassVar[tuple[Field, ...]] = (name_text("dict", optional=True), key_text("key"), name_text("lease_id"))

    dict: str | None
    key: str
    lease_id: str

    def __post_init__(self) -> None:
        # Every lock pays for this several times.
        if not (is_short(self.key) and is_short(self.lease_id) and (self.dict is None or is_short(self.dict))):
            check_fields(self, self.checked)


class Acquire(Command[Acquired], frozen=True):
    """Take a lease unless it is held; the answer is whichever lease holds afterwards.

    It is the caller's exactly when it carries this command's `lease_id`.
    """

    verb: ClassVar[Verb] = "hold"
    answer_type: ClassVar[Any] = Acquired
    checked: ClassVar[tuple[Field, ...]] = (*PLAIN, CAPACITY, WEIGHT, IN_LINE_S, MAX_WAITERS)

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "dict", "key", "holder", "lease_id", "lease_s")

    dict: str | None
    key: str
    holder: str
    lease_id: str
    lease_s: float | None
    default: MaybeRaw = None
    """Stored under the key, when the lease is granted and the key is absent."""
    all_or_none: bool = False
    capacity: int | None = None
    """How much there is of it, for a name with no dict: all users of the name say the same."""
    weight: int = 1
    """How much of the capacity is asked for."""
    in_line_s: float | None = None
    """A caller that is not granted it has a place in the line for so long, and keeps it by asking again under the same `lease_id`."""
    max_waiters: int | None = None
    """With so many in the line, one more gets no place: that raises `LineFull`."""

    def __post_init__(self) -> None:
        if self.dict is not None:
            check_name(self.dict, "dict")
        check_key(self.key)
        check_name(self.lease_id, "lease")
        if self.capacity is None and self.in_line_s is None and self.max_waiters is None and self.weight is ONE:
            check_fields(self, PLAIN)  # Every lock pays for this.
        else:
            check_fields(self, self.checked)
            self._check_capacity()

    def _check_capacity(self) -> None:
        if self.capacity is None and self.weight == 1 and self.in_line_s is None and self.max_waiters is None:
            return
        if self.capacity is None:
            raise ValueError("weight, in_line_s and max_waiters are for a lease with capacity: give capacity, too")
        if self.dict is not None or self.default is not None:
            raise ValueError("a lease on a key of a dict has no capacity: leave dict and default out, and name the lease by its key")
        if self.weight > self.capacity:
            raise ValueError(f"weight must be at most the capacity of {self.capacity:,}, not {self.weight:,}")
        if self.max_waiters is not None and self.in_line_s is None:
            raise ValueError("max_waiters limits the line: give in_line_s, too")
        if self.in_line_s is not None and ":" in self.lease_id:
            raise ValueError(f"the lease_id of a place in line has no colon, as {self.lease_id!r} has")

    def named(self, names: Renamer) -> Self:
        if self.default is not None:
            names.lease(self.dict, self.key, "write")
        name, key = names.lease(self.dict, self.key, self.verb)
        return renamed(self, dict=name, key=key)

    def measure(self, limits: Limits) -> int:
        return check_batch(1, 0 if self.default is None else check_value_size(self.default, limits, "default"), limits)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield ("dict", self.dict), False
        yield ("lease", self.dict, self.key), True
        if self.default is not None:
            yield ("entry", self.dict, self.key), True

    def strictly(self) -> "Acquire":
        return as_a_whole(self)

    def check(self, tx: Transaction) -> "AcquirePlan | SharePlan":
        if self.capacity is not None:
            return check_share(self, self.capacity, tx)
        current = tx.leases([(self.dict, self.key)]).get((self.dict, self.key))
        if isinstance(current, Shared):
            swept = Swept.of(tx, current)
            if not swept.shared.is_gone:
                raise other_capacity(self.key, current.capacity, None)
            return AcquirePlan(None, None, None, None, swept)
        held = current if current is not None and current.held_at(tx.now) else None
        if self.all_or_none and held is not None and held.lease_id != self.lease_id:
            raise lease_held(held, seconds_in(held.until - tx.now))
        entry = None if self.dict is None else living(tx, self.dict, [self.key]).get(self.key)
        return AcquirePlan(held, current, entry, self._default(tx, entry) if held is None else None)

    def _default(self, tx: Transaction, entry: Entry | None) -> Any:
        write = self._write_default()
        return write.check(tx) if write is not None and entry is None else None

    def _write_default(self) -> Write | None:
        if self.dict is None or self.default is None:
            return None
        return Write(self.dict, [Change(self.key, value=self.default, expect="absent")])

    def write(self, tx: Transaction, plan: "AcquirePlan | SharePlan") -> Acquired:
        if isinstance(plan, SharePlan):
            return write_share(self, tx, plan)
        if plan.held is not None:
            return Acquired(plan.held, ends_in_s(tx.now, plan.held.until), plan.entry)
        if plan.swept is not None:
            plan.swept.write(tx)
        topic = log_topic(self.dict, self.key)
        # With its holder: in the log of a dict an entry expires too.
        drafts = [Draft(topic, "expired", {"key": self.key, "holder": plan.before.holder})] if plan.before else []
        drafts.append(Draft(topic, "acquired", {"key": self.key, "holder": self.holder}))
        token = tx.append(drafts) + len(drafts) - 1
        lease = Lease(self.dict, self.key, self.holder, self.lease_id, token, tx.now, end_of(tx.now, self.lease_s))
        tx.save([lease])
        write, entry = self._write_default(), plan.entry
        if write is not None and plan.default is not None:
            entry = write.write(tx, plan.default)[0].entry
        return Acquired(lease, ends_in_s(tx.now, lease.until), entry)

    def undo(self, answer: Acquired) -> list[Command[Any]]:
        """Release what was granted, and before that delete the default that was stored with it, unless it was changed since."""
        if answer.lease.lease_id != self.lease_id and answer.place is None:
            return []
        release, entry = Release([LeaseName(self.dict, self.key, self.lease_id)]), answer.entry
        if self.dict is None or entry is None or entry.value != self.default or entry.revision < answer.lease.token:
            return [release]
        return [Write(self.dict, [Change(self.key, "delete", expect="revision", revision=entry.revision)]), release]

    def recall(self, tx: Transaction, note: bytes) -> Acquired:
        """The lease in force, or, when there is none any more, the answer as it was: a repetition never takes a lease."""
        answer = json.decode(note, type=Acquired)
        if self.capacity is not None:
            return recall_share(self, tx, answer)
        held = tx.leases([(self.dict, self.key)]).get((self.dict, self.key))
        if held is None or not held.held_at(tx.now) or isinstance(held, Shared):
            return answer
        entry = None if self.dict is None else living(tx, self.dict, [self.key]).get(self.key)
        return Acquired(held, ends_in_s(tx.now, held.until), entry)


class AcquirePlan(Struct):
    """The lease in the way, if any, the last one, ended or not, and what granting writes beside the lease."""

    held: Lease | None
    before: Lease | None
    entry: Entry | None
    default: Any
    swept: Swept | None = None
    """What is left of a name with capacity that is no longer in use."""


class OfLeases(Command[R], frozen=True):
    """A command on leases that are held under these names."""

    verb: ClassVar[Verb] = "hold"
    checked: ClassVar[tuple[Field, ...]]

    names: Sequence[LeaseName]

    def __post_init__(self) -> None:
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        found = [names.lease(one.dict, one.key, self.verb) for one in self.names]
        pairs = zip(self.names, found, strict=True)
        return renamed(self, names=all_renamed(self.names, [renamed(one, dict=name, key=key) for one, (name, key) in pairs]))

    def measure(self, limits: Limits) -> int:
        return check_batch(len(self.names), 0, limits)

    def plain(self, *also: str) -> bool:
        """Whether it is about one lease."""
        return len(self.names) == 1 and is_plain(self, also)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        for name in self.names:
            yield ("dict", name.dict), False
            yield ("lease", name.dict, name.key), True

    def strictly(self) -> Self:
        return as_a_whole(self)


class Renewed(Struct, frozen=True, gc=False):
    """Each lease as it is now, None where it was lost."""

    leases: list[Lease | None]


class Renew(OfLeases[Renewed], frozen=True):
    """Keep leases from now on for `lease_s`, those that are still held."""

    answer_type: ClassVar[Any] = Renewed
    checked: ClassVar[tuple[Field, ...]] = (LEASE_S, ALL_OR_NONE)

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "names", "lease_s")

    lease_s: float | None
    all_or_none: bool = False

    def check(self, tx: Transaction) -> list[Lease | Share | None]:
        return check_held(tx, self.names, all_or_none=self.all_or_none)

    def write(self, tx: Transaction, plan: list[Lease | Share | None]) -> Renewed:
        until = end_of(tx.now, self.lease_s)
        renewed = [replace(held, until=until) if held is not None and held.token else None for held in plan]
        tx.save([held for held in renewed if held is not None])
        return Renewed([held.lease if isinstance(held, Share) else held for held in renewed])


class Released(Struct, frozen=True, gc=False):
    """Which leases were still held, in the order asked."""

    held: list[bool]


class Release(OfLeases[Released], frozen=True):
    """Give leases back, those that are still held, and places in the line for one."""

    answer_type: ClassVar[Any] = Released
    checked: ClassVar[tuple[Field, ...]] = (ALL_OR_NONE,)

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "names")

    all_or_none: bool = False

    def check(self, tx: Transaction) -> list[Lease | Share | None]:
        return check_held(tx, self.names, all_or_none=self.all_or_none)

    def write(self, tx: Transaction, plan: list[Lease | Share | None]) -> Released:
        held = [one for one in plan if type(one) is Lease]
        if held and len(held) == len(plan):
            end_leases(tx, held)
            return Released([True] * len(plan))
        gone = set[tuple[str, str]]()
        for kind, ended in groupby([one for one in plan if one is not None], type):
            if kind is Lease:
                end_leases(tx, list(ended))  # type: ignore[arg-type]
                continue
            for share in ended:
                if (share.key, share.lease_id) not in gone:
                    gone.add((share.key, share.lease_id))
                    end_shares(tx, [share])  # type: ignore[list-item]
        return Released([is_held(one) for one in plan])


def end_leases(tx: Transaction, leases: Sequence[Lease], event: str = "released", **facts: object) -> None:
    """Give leases back, tell of it, and wake who waits for them."""
    tx.append([Draft(log_topic(lease.dict, lease.key), event, {"key": lease.key, "holder": lease.holder, **facts}) for lease in leases])
    tx.save([lease.released() for lease in leases])
    for lease in leases:
        tx.hints.wake(lease_topic(lease.dict, lease.key), 1)


def check_held(tx: Transaction, names: Sequence[LeaseName], *, all_or_none: bool) -> list[Lease | Share | None]:
    """What each name still holds: a lease, a share of one with capacity, or only a place in the line for one."""
    found = tx.leases([(name.dict, name.key) for name in names])
    leases = list[Lease | Share | None]()
    for name in names:
        held: Lease | Share | None = found.get((name.dict, name.key))
        if isinstance(held, Shared):
            held = tx.shares(name.key, [name.lease_id]).get(name.lease_id)
        leases.append(held if held is not None and held.lease_id == name.lease_id and held.until > tx.now else None)
        if all_or_none and not is_held(leases[-1]):
            raise lease_lost(name.dict, name.key, name.lease_id)
    return leases


def is_held(held: Lease | Share | None) -> bool:
    """Whether it is more than a place in the line."""
    return held is not None and held.token > 0
