"""The queues and dicts of an environment as a whole, as a transaction sees them."""

from collections.abc import Sequence
from itertools import islice

from msgspec import msgpack

from holdfast.policy_records import Kind, Settings
from holdfast.stores.lmdb.layout import items_within, text_key
from holdfast.stores.lmdb.step import Step

KINDS: dict[Kind, bytes] = {"queue": b"q", "dict": b"d"}

_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(Settings).decode


class Names(Step):
    """Settings by kind and name."""

    def settings(self, kind: Kind, name: str) -> Settings | None:
        encoded = self.txn.get(text_key(KINDS[kind], name), db=self.tables.names)
        return None if encoded is None else _decode(encoded)

    def save_settings(self, settings: Sequence[Settings]) -> None:
        for one in settings:
            self.txn.put(text_key(KINDS[one.kind], one.name), _encode(one), db=self.tables.names)

    def _drop_settings(self, kind: Kind, name: str) -> None:
        self.txn.delete(text_key(KINDS[kind], name), db=self.tables.names)

    def names(self, kind: Kind, prefix: str, after: str | None, limit: int) -> list[Settings]:
        start = KINDS[kind] + prefix.encode()
        behind = b"" if after is None else KINDS[kind] + after.encode()
        found = items_within(self.txn.cursor(self.tables.names), start, behind)
        return [_decode(encoded) for _, encoded in islice(found, limit)]
