"""The queues and dicts of an environment as a whole, as a transaction sees them."""

from collections.abc import Sequence
from itertools import islice

from msgspec import msgpack
from msgspec.structs import asdict, replace

from holdfast.records.policies import Kind, Settings
from holdfast.stores.lmdb.layout import items_within, text_key
from holdfast.stores.lmdb.step import Step

KINDS: dict[Kind, bytes] = {"queue": b"q", "dict": b"d"}


class Stored(Settings, frozen=True, gc=False, omit_defaults=True):
    """Settings as they are kept. A release that knows nothing of policies finds each queue paused whose claims go by one."""

    stopped: bool | None = None
    """Whether such a queue is paused; None in all others."""


_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(Settings).decode
_decode_stored = msgpack.Decoder(Stored).decode


class Names(Step):
    """Settings by kind and name."""

    def settings(self, kind: Kind, name: str) -> Settings | None:
        encoded = self.txn.get(text_key(KINDS[kind], name), db=self.tables.names)
        return None if encoded is None else _read(encoded)

    def save_settings(self, settings: Sequence[Settings]) -> None:
        for one in settings:
            self.txn.put(text_key(KINDS[one.kind], one.name), _write(one), db=self.tables.names)

    def _drop_settings(self, kind: Kind, name: str) -> None:
        self.txn.delete(text_key(KINDS[kind], name), db=self.tables.names)

    def names(self, kind: Kind, prefix: str, after: str | None, limit: int) -> list[Settings]:
        start = KINDS[kind] + prefix.encode()
        behind = b"" if after is None else KINDS[kind] + after.encode()
        found = items_within(self.txn.cursor(self.tables.names), start, behind)
        return [_read(encoded) for _, encoded in islice(found, limit)]


def _read(encoded: bytes) -> Settings:
    settings = _decode(encoded)
    if not (settings.paused and settings.is_ruled):
        return settings
    return replace(settings, paused=_decode_stored(encoded).stopped is not False)


def _write(settings: Settings) -> bytes:
    if not settings.is_ruled:
        return _encode(settings)
    return _encode(Stored(**{**asdict(settings), "paused": True, "stopped": settings.paused}))
