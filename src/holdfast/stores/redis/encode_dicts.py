"""Encodes commands on dicts and leases for Redis, and decodes their results."""

from typing import Final

from msgspec import Struct, json, msgpack

from holdfast.commands import (
    Acquire,
    Acquired,
    Break,
    Broken,
    Change,
    Entries,
    Holding,
    Leases,
    Length,
    Listed,
    Look,
    Looked,
    LowerFences,
    Read,
    Release,
    Released,
    Renew,
    Renewed,
    Resize,
    Resized,
    Write,
    Written,
)
from holdfast.records import seconds_in
from holdfast.stores.redis.plans import Fields, Plan, Plans, Repeated, given, listed_from, stated_fields
from holdfast.stores.redis.records import KeptEntry, KeptLease

OF_CAPACITY: Final = ("capacity", "weight", "in_line_s", "max_waiters")
"""What is said only of a lease with capacity."""


def _read(command: Read) -> Fields:
    if command.keys is not None:
        return {"dict": command.dict, "keys": list(command.keys)}
    return listed_from(command)


_facts_of_write = Repeated(Write, "changes").of
_facts_of_change = stated_fields(Change, [name for name in Change.__struct_fields__ if name != "by"])


def _write(command: Write) -> Fields:
    fields = _facts_of_write(command)
    fields["changes"] = list(map(_change, command.changes))
    return fields


def _change(change: Change) -> Fields:
    fields = _facts_of_change(change)
    if change.do == "increment":
        fields["by"] = json.encode(change.by).decode()  # Exactly as it was given.
    return fields


def _acquire(command: Acquire) -> Fields:
    return given(command, *OF_CAPACITY) if command.capacity is None else given(command)


def _of_leases(command: Renew | Release) -> Fields:
    return {**given(command, "names"), "names": [(name.dict or "", name.key, name.lease_id) for name in command.names]}


class _Found(Struct, frozen=True):
    """Entries, and what comes with them."""

    entries: list[KeptEntry]
    index: int
    more: bool = False


class _Outcome(Struct, frozen=True):
    """What became of one change."""

    entry: KeptEntry | bool
    because: str
    due_in: int | None = None


class _Granted(Struct, frozen=True):
    """A lease in force, and the entry under its key."""

    lease: KeptLease
    ends_in: int | None = None
    entry: KeptEntry | None = None
    holders: list[KeptLease] = []
    place: int | None = None

    def acquired(self, name: str | None, key: str) -> Acquired:
        entry = None if self.entry is None or name is None else self.entry.entry(name)
        ends_in_s = None if self.ends_in is None else seconds_in(self.ends_in)
        return Acquired(self.lease.on(name, key), ends_in_s, entry, [one.on(name, key) for one in self.holders], self.place)


class _Renewed(Struct, frozen=True):
    leases: list[KeptLease | bool]


class _Broken(Struct, frozen=True):
    leases: list[KeptLease]


class _Holding(Struct, frozen=True):
    key: str
    leases: list[KeptLease] = []
    capacity: int | None = None
    used: int | None = None
    waiting: int | None = None
    resized: bool = False


class _Listed(Struct, frozen=True):
    held: list[_Holding]
    now: int
    after: str | None = None


class _Looked(Struct, frozen=True):
    leases: list[_Granted | bool]
    index: int


_decode_found = msgpack.Decoder(_Found).decode
_decode_outcomes = msgpack.Decoder(list[_Outcome]).decode
_decode_granted = msgpack.Decoder(_Granted).decode
_decode_renewed = msgpack.Decoder(_Renewed).decode
_decode_released = msgpack.Decoder(Released).decode
_decode_resized = msgpack.Decoder(Resized).decode
_decode_looked = msgpack.Decoder(_Looked).decode
_decode_listed = msgpack.Decoder(_Listed).decode
_decode_broken = msgpack.Decoder(_Broken).decode
_decode_int = msgpack.Decoder(int).decode


def _entries(command: Read, reply: bytes) -> Entries:
    found = _decode_found(reply)
    return Entries([kept.entry(command.dict) for kept in found.entries], found.index, found.more)


def _written(command: Write, reply: bytes) -> list[Written]:
    outcomes = _decode_outcomes(reply)
    kept = [one.entry.entry(command.dict) if isinstance(one.entry, KeptEntry) else None for one in outcomes]
    return [
        Written(entry, one.because, None if one.due_in is None else seconds_in(one.due_in))  # type: ignore[arg-type]
        for entry, one in zip(kept, outcomes, strict=True)
    ]


def _leases(command: Renew, reply: bytes) -> Renewed:
    found = zip(command.names, _decode_renewed(reply).leases, strict=True)
    return Renewed([one.on(name.dict, name.key) if isinstance(one, KeptLease) else None for name, one in found])


def _looked(command: Look, reply: bytes) -> Looked:
    found = _decode_looked(reply)
    leases = zip(command.keys, found.leases, strict=True)
    return Looked([one.acquired(command.dict, key) if isinstance(one, _Granted) else None for key, one in leases], found.index)


def _listed(command: Leases, reply: bytes) -> Listed:
    found = _decode_listed(reply)
    held = [
        Holding(one.key, [lease.on(command.dict, one.key) for lease in one.leases], one.capacity, one.used, one.waiting, one.resized)
        for one in found.held
    ]
    return Listed(held, command.dict, found.after, found.now)


def _broken(_: Break, reply: bytes) -> Broken:
    return Broken([lease.lease() for lease in _decode_broken(reply).leases])


PLANS: Final[Plans] = {
    Read: Plan(_read, _entries),
    Length: Plan(given, lambda _, reply: _decode_int(reply)),
    Write: Plan(_write, _written),
    LowerFences: Plan(given, lambda _, reply: _decode_int(reply)),
    Acquire: Plan(_acquire, lambda command, reply: _decode_granted(reply).acquired(command.dict, command.key), ("default", *OF_CAPACITY)),
    Renew: Plan(_of_leases, _leases),
    Release: Plan(_of_leases, lambda _, reply: _decode_released(reply)),
    Resize: Plan(given, lambda _, reply: _decode_resized(reply)),
    Look: Plan(given, _looked),
    Leases: Plan(listed_from, _listed),
    Break: Plan(given, _broken),
}
