"""Acquiring, renewing and releasing leases, for locks and elections."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct, json
from msgspec.structs import replace

from holdfast.codec import Limits, check_batch, check_name, check_value_size
from holdfast.codec.fields import ALL_OR_NONE, HOLDER, LEASE_S, Field, check_fields, key_text, name_text
from holdfast.commands.argument_checks import check_key
from holdfast.commands.change import Change
from holdfast.commands.command import Command, Resource
from holdfast.commands.dicts import Write, living
from holdfast.commands.names import Renamer, Verb, all_renamed, renamed
from holdfast.commands.plain import is_plain
from holdfast.commands.refusal_errors import lease_held, lease_lost
from holdfast.commands.topics import lease_topic, log_topic
from holdfast.commands.transaction import Draft, Transaction
from holdfast.records import NEVER, Entry, Lease, MaybeRaw, end_of, seconds_in


class LeaseName(Struct, frozen=True, gc=False, array_like=True):
    """Names one grant of a lease: no other grant on the key, earlier or later, has the same."""

    checked: ClassVar[tuple[Field, ...]] = (name_text("dict", optional=True), key_text("key"), name_text("lease_id"))

    dict: str | None
    key: str
    lease_id: str

    def __post_init__(self) -> None:
        check_fields(self, self.checked)


class Acquired(Struct, frozen=True, gc=False, omit_defaults=True):
    """The lease in force, in how many seconds it ends, and the entry under its key at that moment."""

    lease: Lease
    ends_in_s: float | None = None
    entry: Entry | None = None


class Acquire(Command[Acquired], frozen=True):
    """Take a lease unless it is held; the answer is whichever lease holds afterwards.

    It is the caller's exactly when it carries this command's `lease_id`.
    """

    verb: ClassVar[Verb] = "hold"
    answer_type: ClassVar[Any] = Acquired
    checked: ClassVar[tuple[Field, ...]] = (HOLDER, LEASE_S, ALL_OR_NONE)

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "dict", "key", "holder", "lease_id", "lease_s")

    dict: str | None
    key: str
    holder: str
    lease_id: str
    lease_s: float | None
    default: MaybeRaw = None
    """Stored under the key, when the lease is granted and the key is absent."""
    all_or_none: bool = False

    def __post_init__(self) -> None:
        if self.dict is not None:
            check_name(self.dict, "dict")
        check_key(self.key)
        check_name(self.lease_id, "lease")
        check_fields(self, self.checked)

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
        return replace(self, all_or_none=True)

    def check(self, tx: Transaction) -> "AcquirePlan":
        current = tx.leases([(self.dict, self.key)]).get((self.dict, self.key))
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

    def write(self, tx: Transaction, plan: "AcquirePlan") -> Acquired:
        if plan.held is not None:
            return Acquired(plan.held, ends_in_s(tx, plan.held), plan.entry)
        topic = log_topic(self.dict, self.key)
        # With its holder: in the log of a dict an entry expires too.
        drafts = [Draft(topic, "expired", {"key": self.key, "holder": plan.before.holder})] if plan.before else []
        drafts.append(Draft(topic, "acquired", {"key": self.key, "holder": self.holder}))
        token = tx.append(drafts) + len(drafts) - 1
        lease = Lease(self.dict, self.key, self.holder, self.lease_id, token, tx.now, end_of(tx.now, self.lease_s))
        tx.save_leases([lease])
        write, entry = self._write_default(), plan.entry
        if write is not None and plan.default is not None:
            entry = write.write(tx, plan.default)[0].entry
        return Acquired(lease, ends_in_s(tx, lease), entry)

    def undo(self, answer: Acquired) -> list[Command[Any]]:
        """Release what was granted, and before that delete the default that was stored with it, unless it was changed since."""
        if answer.lease.lease_id != self.lease_id:
            return []
        release, entry = Release([LeaseName(self.dict, self.key, self.lease_id)]), answer.entry
        if self.dict is None or entry is None or entry.value != self.default or entry.revision < answer.lease.token:
            return [release]
        return [Write(self.dict, [Change(self.key, "delete", expect="revision", revision=entry.revision)]), release]

    def recall(self, tx: Transaction, note: bytes) -> Acquired:
        """The lease in force, or, when there is none any more, the answer as it was: a repetition never takes a lease."""
        plan = replace(self, all_or_none=False).check(tx)
        return self.write(tx, plan) if plan.held is not None else json.decode(note, type=Acquired)


class AcquirePlan(Struct):
    """The lease in the way, if any, the last one, ended or not, and what granting writes beside the lease."""

    held: Lease | None
    before: Lease | None
    entry: Entry | None
    default: Any


class Renewed(Struct, frozen=True, gc=False):
    """Each lease as it is now, None where it was lost."""

    leases: list[Lease | None]


class Renew(Command[Renewed], frozen=True):
    """Keep leases from now on for `lease_s`, those that are still held."""

    verb: ClassVar[Verb] = "hold"
    answer_type: ClassVar[Any] = Renewed
    checked: ClassVar[tuple[Field, ...]] = (LEASE_S, ALL_OR_NONE)

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "names", "lease_s")

    names: Sequence[LeaseName]
    lease_s: float | None
    all_or_none: bool = False

    def __post_init__(self) -> None:
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        return renamed(self, names=_lease_names(self, names))

    def measure(self, limits: Limits) -> int:
        return check_batch(len(self.names), 0, limits)

    def plain(self, *also: str) -> bool:
        """Whether it is about one lease."""
        return len(self.names) == 1 and is_plain(self, also)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        return touched(self.names)

    def strictly(self) -> "Renew":
        return replace(self, all_or_none=True)

    def check(self, tx: Transaction) -> list[Lease | None]:
        return check_held(tx, self.names, all_or_none=self.all_or_none)

    def write(self, tx: Transaction, plan: list[Lease | None]) -> Renewed:
        until = end_of(tx.now, self.lease_s)
        renewed = [None if lease is None else replace(lease, until=until) for lease in plan]
        held = [lease for lease in renewed if lease is not None]
        if held:
            tx.save_leases(held)
        return Renewed(renewed)


class Released(Struct, frozen=True, gc=False):
    """Which leases were still held, in the order asked."""

    held: list[bool]


class Release(Command[Released], frozen=True):
    """Give leases back, those that are still held."""

    verb: ClassVar[Verb] = "hold"
    answer_type: ClassVar[Any] = Released
    checked: ClassVar[tuple[Field, ...]] = (ALL_OR_NONE,)

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "names")

    names: Sequence[LeaseName]
    all_or_none: bool = False

    def __post_init__(self) -> None:
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        return renamed(self, names=_lease_names(self, names))

    def measure(self, limits: Limits) -> int:
        return check_batch(len(self.names), 0, limits)

    def plain(self, *also: str) -> bool:
        """Whether it is about one lease."""
        return len(self.names) == 1 and is_plain(self, also)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        return touched(self.names)

    def strictly(self) -> "Release":
        return replace(self, all_or_none=True)

    def check(self, tx: Transaction) -> list[Lease | None]:
        return check_held(tx, self.names, all_or_none=self.all_or_none)

    def write(self, tx: Transaction, plan: list[Lease | None]) -> Released:
        held = [lease for lease in plan if lease is not None]
        if held:
            end_leases(tx, held)
        return Released([lease is not None for lease in plan])


def end_leases(tx: Transaction, leases: Sequence[Lease]) -> None:
    """Give leases back, tell of it, and wake who waits for them."""
    tx.append([Draft(log_topic(lease.dict, lease.key), "released", {"key": lease.key, "holder": lease.holder}) for lease in leases])
    tx.save_leases([lease.released() for lease in leases])
    for lease in leases:
        tx.wake(lease_topic(lease.dict, lease.key), 1)


def check_held(tx: Transaction, names: Sequence[LeaseName], *, all_or_none: bool) -> list[Lease | None]:
    """The lease that each name still holds."""
    found = tx.leases([(name.dict, name.key) for name in names])
    leases = list[Lease | None]()
    for name in names:
        lease = found.get((name.dict, name.key))
        leases.append(lease if lease is not None and lease.lease_id == name.lease_id and lease.held_at(tx.now) else None)
        if all_or_none and leases[-1] is None:
            raise lease_lost(name.dict, name.key, name.lease_id)
    return leases


def touched(names: Sequence[LeaseName]) -> Iterator[tuple[Resource, bool]]:
    """What a command on these leases changes."""
    for name in names:
        yield ("dict", name.dict), False
        yield ("lease", name.dict, name.key), True


def ends_in_s(tx: Transaction, lease: Lease) -> float | None:
    """How long the lease still runs, None for ever."""
    return None if lease.until >= NEVER else seconds_in(lease.until - tx.now)


def _lease_names(command: Renew | Release, names: Renamer) -> Sequence[LeaseName]:
    found = [names.lease(one.dict, one.key, command.verb) for one in command.names]
    pairs = zip(command.names, found, strict=True)
    return all_renamed(command.names, [renamed(one, dict=name, key=key) for one, (name, key) in pairs])
