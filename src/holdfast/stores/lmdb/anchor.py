"""The clock anchor and the file identity that an environment stores."""

import os

import lmdb
from msgspec import json

from holdfast.clock import Anchor, Host, anchored
from holdfast.stores.files.replaced import inode_of, warn_of_copy
from holdfast.stores.lmdb.layout import NUMBER
from holdfast.stores.lmdb.log import moment_of_event
from holdfast.stores.lmdb.step import MOMENT
from holdfast.stores.lmdb.tables import Tables

_ANCHOR, _FILE = b"anchor", b"file"


def read_anchor(txn: "lmdb.Transaction[bytes]", tables: Tables, host: Host) -> tuple[Anchor, bool]:
    """The anchor to measure from, and whether an earlier one had to be replaced; inside a transaction that keeps it."""
    kept = txn.get(_ANCHOR, db=tables.about)
    stored = None if kept is None else json.decode(kept, type=Anchor)
    anchor = anchored(stored, _latest(txn, tables), host)
    if anchor != stored:
        txn.put(_ANCHOR, json.encode(anchor), db=tables.about)
    return anchor, stored is not None and anchor != stored


def note_file(txn: "lmdb.Transaction[bytes]", tables: Tables, data: str | os.PathLike[str]) -> None:
    """Remember which file this is; say so where it is another one than the last time."""
    kept, found = txn.get(_FILE, db=tables.about), inode_of(data)
    if kept is None or warn_of_copy(data, NUMBER.unpack(kept)[0], found):
        txn.put(_FILE, NUMBER.pack(found), db=tables.about)


def _latest(txn: "lmdb.Transaction[bytes]", tables: Tables) -> int:
    """The latest moment at which anything was written."""
    cursor = txn.cursor(tables.events)
    last_event = moment_of_event(cursor.value()) if cursor.last() else 0
    untold = txn.get(MOMENT, db=tables.about)
    return max(last_event, NUMBER.unpack(untold)[0] if untold is not None else 0)
