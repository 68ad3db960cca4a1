"""The entries and leases of an environment, as a transaction sees them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from struct import Struct as Form

from msgspec import Raw, msgpack

from holdfast.records import NEVER, Entry, Lease
from holdfast.stores.lmdb.layout import NUMBER, items_within, moment_in_key, moment_start, scope, text_key
from holdfast.stores.lmdb.step import Step

_HEAD = Form(">qqq")
"""End, revision and fence, before the value; a value of no bytes is a deleted key, of which only the fence is remembered."""

_encode = msgpack.Encoder().encode
read_lease: Callable[[bytes], Lease] = msgpack.Decoder(Lease).decode


class Dicts(Step):
    """The dict half of a transaction."""

    def entries(self, name: str, keys: Collection[str]) -> dict[str, Entry]:
        start, found = scope(name), dict[str, Entry]()
        for key in keys:
            encoded = self.txn.get(text_key(start, key), db=self.tables.entries)
            if encoded is not None and self._is_there(encoded):
                found[key] = _entry(name, key, encoded)
        return found

    def fences(self, name: str, keys: Collection[str]) -> dict[str, int]:
        start, found = scope(name), dict[str, int]()
        for key in keys:
            encoded = self.txn.get(text_key(start, key), db=self.tables.entries)
            fence = fence_of(encoded) if encoded is not None else 0
            if fence:
                found[key] = fence
        return found

    def scan(self, name: str, prefix: str, after: str | None, limit: int) -> Iterator[Entry]:
        start = scope(name)
        behind = b"" if after is None else start + after.encode()
        found = islice(self._within(start + prefix.encode(), behind), limit)
        return (_entry(name, key[len(start) :].decode(), value) for key, value in found)

    def length(self, name: str) -> int:
        return sum(1 for _ in self._within(scope(name)))

    def _within(self, start: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        for key, value in items_within(self.txn.cursor(self.tables.entries), start, after):
            if self._is_there(value):
                yield key, value

    def _is_there(self, encoded: bytes) -> bool:
        return len(encoded) > _HEAD.size and _HEAD.unpack_from(encoded)[0] > self.now

    def save_entries(self, entries: Sequence[Entry]) -> None:
        rows = []
        for entry in entries:
            place = text_key(scope(entry.dict), entry.key)
            fence = max(entry.fence, self._forget_end(place))
            end = NEVER if entry.expires_at is None else entry.expires_at
            rows.append((place, _HEAD.pack(end, entry.revision, fence) + bytes(entry.value)))
            if entry.expires_at is not None:
                self.txn.put(moment_start(end) + place, entry.dict.encode(), db=self.tables.ends)
        self._put_all(self.tables.entries, rows)

    def delete_entries(self, name: str, keys: Collection[str], fences: Mapping[str, int]) -> None:
        start = scope(name)
        for key in keys:
            self._delete(text_key(start, key), fences.get(key, 0))

    def _delete(self, place: bytes, fence: int) -> None:
        fence = max(fence, self._forget_end(place))
        if fence:
            self.txn.put(place, _HEAD.pack(NEVER, 0, fence), db=self.tables.entries)
        else:
            self.txn.delete(place, db=self.tables.entries)

    def _forget_end(self, place: bytes) -> int:
        """Take an entry that is to be replaced out of the order of ends; return its fence."""
        encoded = self.txn.get(place, db=self.tables.entries)
        if encoded is None:
            return 0
        end, _, fence = _HEAD.unpack_from(encoded)
        if end != NEVER:
            self.txn.delete(moment_start(end) + place, db=self.tables.ends)
        return int(fence)

    def clear_dict(self, name: str) -> int:
        start = scope(name)
        count = self.length(name)
        kept = [key for key, value in items_within(self.txn.cursor(self.tables.entries), start) if len(value) > _HEAD.size]
        for place in kept:
            self._delete(place, 0)
        return count

    def lower_fences(self, name: str, newest: int, limit: int) -> int:
        within = items_within(self.txn.cursor(self.tables.entries), scope(name))
        high = list(islice(((place, encoded) for place, encoded in within if fence_of(encoded) > newest), limit))
        for place, encoded in high:
            end, revision, _ = _HEAD.unpack_from(encoded)
            self.txn.put(place, _HEAD.pack(end, revision, newest) + encoded[_HEAD.size :], db=self.tables.entries)
        return len(high)

    def stale_entries(self, limit: int) -> list[Entry]:
        stale: list[Entry] = []
        for end, encoded_name in items_within(self.txn.cursor(self.tables.ends), b""):
            if moment_in_key(b"", end) > self.now or len(stale) >= limit:
                break
            name, place = encoded_name.decode(), end[NUMBER.size :]
            encoded = self.txn.get(place, b"", db=self.tables.entries)
            stale.append(_entry(name, place[len(scope(name)) :].decode(), encoded))
        return stale

    def leases(self, keys: Collection[tuple[str | None, str]]) -> dict[tuple[str | None, str], Lease]:
        found = dict[tuple[str | None, str], Lease]()
        for name, key in keys:
            encoded = self.txn.get(text_key(scope(name), key), db=self.tables.leases)
            if encoded is not None:
                found[name, key] = read_lease(encoded)
        return found

    def save_leases(self, leases: Sequence[Lease]) -> None:
        self._put_all(self.tables.leases, [(text_key(scope(lease.dict), lease.key), _encode(lease)) for lease in leases])
        self._note_moment()

    def delete_leases(self, keys: Collection[tuple[str | None, str]]) -> None:
        for name, key in keys:
            self.txn.delete(text_key(scope(name), key), db=self.tables.leases)

    def dict_leases(self, name: str) -> list[Lease]:
        return [read_lease(encoded) for _, encoded in items_within(self.txn.cursor(self.tables.leases), scope(name))]


def fence_of(encoded: bytes) -> int:
    """The fence of an entry, deleted or not."""
    return int(_HEAD.unpack_from(encoded)[2])


def _entry(name: str, key: str, encoded: bytes) -> Entry:
    end, revision, fence = _HEAD.unpack_from(encoded)
    return Entry(name, key, Raw(encoded[_HEAD.size :]), revision, fence, None if end == NEVER else end)
