"""The entries and leases of a memory store, as a transaction sees them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from holdfast.records import Entry, Lease
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
        return {key: found.entries[key] for key in keys if key in found.entries and self._is_there(found.entries[key])}

    def fences(self, name: str, keys: Collection[str]) -> dict[str, int]:
        found = self.tables.dicts.get(name)
        return {key: found.fences[key] for key in keys if key in found.fences} if found else {}

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
            self.tables.dicts.save(entry if self.tables.by_reference else replace(entry, value=entry.value.copy()))

    def delete_entries(self, name: str, keys: Collection[str], fences: Mapping[str, int]) -> None:
        for key in keys:
            self._note_entry(name, key)
            self.tables.dicts.delete(name, key, fences.get(key, 0))

    def clear_dict(self, name: str) -> int:
        found = self.tables.dicts.get(name)
        if found is None:
            return 0
        count = self.length(name)
        self.delete_entries(name, list(found.entries), {})
        return count

    def lower_fences(self, name: str, newest: int, limit: int) -> int:
        found = self.tables.dicts.get(name)
        high = list(islice((key for key, fence in found.fences.items() if fence > newest), limit)) if found else []
        for key in high:
            self._note_entry(name, key)
            self.tables.dicts.lower_fence(name, key, newest)
        return len(high)

    def stale_entries(self, limit: int) -> list[Entry]:
        return self.tables.dicts.stale(self.now, limit)

    def leases(self, keys: Collection[tuple[str | None, str]]) -> dict[tuple[str | None, str], Lease]:
        found = {(name, key): self.tables.leases.get(name, {}).get(key) for name, key in keys}
        return {name: lease for name, lease in found.items() if lease is not None}

    def save_leases(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            of_dict = self.tables.leases.setdefault(lease.dict, {})
            self.undo.note(of_dict, lease.key)
            of_dict[lease.key] = lease

    def delete_leases(self, keys: Collection[tuple[str | None, str]]) -> None:
        for name, key in keys:
            of_dict = self.tables.leases.get(name, {})
            self.undo.note(of_dict, key)
            of_dict.pop(key, None)

    def dict_leases(self, name: str) -> list[Lease]:
        return sorted(self.tables.leases.get(name, {}).values(), key=lambda lease: lease.key)

    def _note_entry(self, name: str, key: str) -> None:
        """Say that this entry is about to change."""
        found = self.tables.dicts.made(name)
        self.undo.note(found.entries, key)
        self.undo.note(found.fences, key)

    def _is_there(self, entry: Entry) -> bool:
        return entry.expires_at is None or entry.expires_at > self.now
