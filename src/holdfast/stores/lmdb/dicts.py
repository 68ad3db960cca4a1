"""The entries and leases of an environment, as a transaction sees them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from struct import Struct as Form

from msgspec import UNSET, Raw, UnsetType, msgpack

from holdfast.records import NEVER, NO_VALUE, Entry, Lease
from holdfast.records.shares import Share, Shared, ShareOrder
from holdfast.stores.lmdb.layout import NUMBER, items_within, moment_in_key, moment_start, scope, text_key
from holdfast.stores.lmdb.step import Step

_HEAD = Form(">qqq")
"""End, revision and fence, before the value; a value of no bytes is a deleted key, of which only the fence is remembered."""

_encode = msgpack.Encoder().encode
_read_lease: Callable[[bytes], Lease] = msgpack.Decoder(Lease).decode
_read_shared: Callable[[bytes], Shared] = msgpack.Decoder(Shared).decode
_read_share: Callable[[bytes], Share] = msgpack.Decoder(Share).decode

_PLAIN = 0x80 + len(Lease.__struct_fields__)
"""How a lease begins: a map of all of its fields. What stands for a name with capacity has more."""


def read_lease(encoded: bytes) -> Lease:
    """A lease, or what stands for a name with capacity."""
    return _read_lease(encoded) if encoded[0] == _PLAIN else _read_shared(encoded)


class Dicts(Step):
    """The dict half of a transaction."""

    def entries(self, name: str, keys: Collection[str]) -> dict[str, Entry]:
        start, found = scope(name), dict[str, Entry]()
        for key in keys:
            encoded = self.txn.get(text_key(start, key), db=self.tables.entries)
            if encoded is not None:
                found[key] = _entry(name, key, encoded)
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
            self._forget_end(place)
            end = NEVER if entry.expires_at is None else entry.expires_at
            if entry.is_gone:
                self.txn.delete(place, db=self.tables.entries)
                continue
            rows.append((place, _HEAD.pack(end, entry.revision, entry.fence) + bytes(entry.value)))
            if entry.expires_at is not None:
                self.txn.put(moment_start(end) + place, entry.dict.encode(), db=self.tables.ends)
        self._put_all(self.tables.entries, rows)

    def _delete(self, place: bytes) -> None:
        fence = self._forget_end(place)
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

    def _clear_dict(self, name: str) -> int:
        start = scope(name)
        count = self.length(name)
        kept = [key for key, value in items_within(self.txn.cursor(self.tables.entries), start) if len(value) > _HEAD.size]
        for place in kept:
            self._delete(place)
        return count

    def _stale_entries(self, limit: int) -> list[Entry]:
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
        held = list[tuple[bytes, bytes]]()
        for lease in leases:
            place = text_key(scope(lease.dict), lease.key)
            if lease.is_gone:
                self.txn.delete(place, db=self.tables.leases)
            else:
                held.append((place, _encode(lease)))
        if held:
            self._put_all(self.tables.leases, held)
            self._note_moment()

    def leases_of(self, name: str | UnsetType | None = UNSET, prefix: str = "", after: str | None = None) -> Iterator[Lease]:
        start = b"" if name is UNSET else scope(name)
        behind = b"" if after is None else text_key(start, after)
        within = items_within(self.txn.cursor(self.tables.leases), start + prefix.encode(), behind)
        return (read_lease(encoded) for _, encoded in within)

    def shares(self, key: str, lease_ids: Collection[str]) -> dict[str, Share]:
        found = ((lease_id, self.txn.get(_share_key(key, lease_id), db=self.tables.shares)) for lease_id in lease_ids)
        return {lease_id: _read_share(encoded) for lease_id, encoded in found if encoded is not None}

    def find_shares(self, key: str, by: ShareOrder, limit: int, after: int = 0) -> list[Share]:
        if by == "line":
            places = items_within(self.txn.cursor(self.tables.share_lines), scope(key), scope(key) + NUMBER.pack(after))
            ids = [lease_id.decode() for _, lease_id in islice(places, limit)]
        else:
            start = _ends_start(key, waits=by == "tickets")
            behind = start + moment_start(after + 1)
            ends = items_within(self.txn.cursor(self.tables.share_ends), start, behind)
            ids = [place[len(behind) :].decode() for place, _ in islice(ends, limit)]
        found = self.shares(key, ids)
        return [found[lease_id] for lease_id in ids]

    def save_shares(self, shares: Sequence[Share]) -> None:
        for share in shares:
            self._delete_share(share.key, share.lease_id)
            if share.is_gone:
                continue
            self.txn.put(_share_key(share.key, share.lease_id), _encode(share), db=self.tables.shares)
            self.txn.put(_end_key(share), b"", db=self.tables.share_ends)
            if share.place:
                self.txn.put(scope(share.key) + NUMBER.pack(share.place), share.lease_id.encode(), db=self.tables.share_lines)
        self._note_moment()

    def _delete_share(self, key: str, lease_id: str) -> None:
        share = self.shares(key, [lease_id]).get(lease_id)
        if share is None:
            return
        self.txn.delete(_share_key(key, lease_id), db=self.tables.shares)
        self.txn.delete(_end_key(share), db=self.tables.share_ends)
        if share.place:
            self.txn.delete(scope(key) + NUMBER.pack(share.place), db=self.tables.share_lines)


def _share_key(key: str, lease_id: str) -> bytes:
    return text_key(scope(key), lease_id)


def _ends_start(key: str, *, waits: bool) -> bytes:
    return scope(key) + bytes([waits])


def _end_key(share: Share) -> bytes:
    return _ends_start(share.key, waits=bool(share.place)) + moment_start(share.until) + share.lease_id.encode()


def fence_of(encoded: bytes) -> int:
    """The fence of an entry, deleted or not."""
    return int(_HEAD.unpack_from(encoded)[2])


def _entry(name: str, key: str, encoded: bytes) -> Entry:
    end, revision, fence = _HEAD.unpack_from(encoded)
    value = Raw(encoded[_HEAD.size :]) if len(encoded) > _HEAD.size else NO_VALUE
    return Entry(name, key, value, revision, fence, None if end == NEVER else end)
