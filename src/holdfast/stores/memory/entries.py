"""The entries and leases of a memory store, as a transaction sees them."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from holdfast.commands.transaction import Fenced
from holdfast.records import NO_VALUE, Entry, Lease
from holdfast.records.shares import Share, ShareOrder
from holdfast.stores.memory.tables import Tables
from holdfast.stores.memory.undo import Undo


class Entries:
    """The dict half of a transaction."""

    tables: Tables
    now: int
    undo: Undo

    def entries(self, name: str, keys: Collection[str]) -> dict[str, Entry]:
        found = self.tables.dicts.get(name)
        if found is None:
            return {}
        known = {key: found.entries[key] for key in keys if key in found.entries}
        if found.fences:
            known |= {key: Entry(name, key, NO_VALUE, 0, found.fences[key]) for key in keys if key in found.fences and key not in known}
        return known

    def scan(self, name: str, prefix: str, after: str | None, limit: int) -> Iterator[Entry]:
        found = self.tables.dicts.get(name)
        return islice(filter(self._is_there, found.in_order(prefix, after)), limit) if found else iter(())

    def length(self, name: str) -> int:
        found = self.tables.dicts.get(name)
        if found is None or not found.timed_count:
            return len(found.entries) if found else 0
        return sum(map(self._is_there, found.entries.values()))

    def save_entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._note_entry(entry.dict, entry.key)
            is_kept = self.tables.by_reference or entry.value is NO_VALUE
            self.tables.dicts.save(entry if is_kept else replace(entry, value=entry.value.copy()))

    def _clear_dict(self, name: str) -> int:
        found = self.tables.dicts.get(name)
        if found is None:
            return 0
        count = self.length(name)
        self.save_entries([entry.deleted() for entry in found.entries.values()])
        return count

    def fenced(self, after: tuple[str, str]) -> Iterator[Fenced]:
        found = ((name, key, fence) for name, one in self.tables.dicts.each() for key, fence in one.fences.items() if (name, key) > after)
        return (Fenced(*row) for row in sorted(found))

    def leases(self, keys: Collection[tuple[str | None, str]]) -> dict[tuple[str | None, str], Lease]:
        leases, found = self.tables.leases, dict[tuple[str | None, str], Lease]()
        for name in keys:
            of_dict = leases.get(name[0])
            lease = None if of_dict is None else of_dict.get(name[1])
            if lease is not None:
                found[name] = lease
        return found

    def save_leases(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            of_dict = self.tables.leases.setdefault(lease.dict, {})
            self.undo.note(of_dict, lease.key)
            if lease.is_gone:
                of_dict.pop(lease.key, None)
            else:
                of_dict[lease.key] = lease

    def leases_of(self, name: str | UnsetType | None = UNSET, prefix: str = "", after: str | None = None) -> Iterator[Lease]:
        if name is UNSET:
            return (lease for of_dict in self.tables.leases.values() for lease in of_dict.values())
        of_dict = self.tables.leases.get(name, {})
        keys = sorted(key for key in of_dict if key.startswith(prefix) and (after is None or key > after))
        return (of_dict[key] for key in keys)

    def shares(self, key: str, lease_ids: Collection[str]) -> dict[str, Share]:
        found = self.tables.shares.by_id
        return {lease_id: found[key, lease_id] for lease_id in lease_ids if (key, lease_id) in found}

    def find_shares(self, key: str, by: ShareOrder, limit: int, after: int = 0) -> Iterator[Share]:
        return self.tables.shares.find(key, by, limit, after)

    def save_shares(self, shares: Sequence[Share]) -> None:
        for share in shares:
            self.undo.note(self.tables.shares.by_id, (share.key, share.lease_id))
            self.tables.shares.save(share)

    def _note_entry(self, name: str, key: str) -> None:
        """Say that this entry is about to change."""
        found = self.tables.dicts.made(name)
        self.undo.note(found.entries, key)
        self.undo.note(found.fences, key)

    def _is_there(self, entry: Entry) -> bool:
        return entry.is_there(self.now)
