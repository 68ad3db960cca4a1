"""One atomic step on a memory store."""

from collections.abc import Callable, Sequence
from heapq import nsmallest
from itertools import groupby
from typing import Any

from holdfast.commands.allowance import Allowance
from holdfast.commands.hints import ALL, Hints
from holdfast.commands.topics import watch_topic
from holdfast.commands.transaction import Draft, Outdated, Record, Stretch
from holdfast.records import Entry, Lease, Message
from holdfast.records.policies import Kind, Lane, Settings
from holdfast.records.shares import Share, Shared
from holdfast.stores.memory.copying import Copies
from holdfast.stores.memory.entries import Entries
from holdfast.stores.memory.messages import Messages
from holdfast.stores.memory.tables import Tables
from holdfast.stores.memory.undo import Undo


class MemoryTransaction(Messages, Entries, Copies):
    """What commands ask for. A command refuses before it writes; only an interrupted one is taken back."""

    def __init__(self, tables: Tables, now: int, wall_offset: int) -> None:
        super().__init__(tables, now)
        self.undo: Undo = Undo(tables, tables.log.latest)
        self.wall_offset = wall_offset
        # Where values are the caller's own objects nobody knows how long they are, and nothing is copied.
        self.allowance: Allowance = Allowance(None)
        self.reserved: dict[str, int] = {}
        self.hints: Hints = Hints()

    def append(self, drafts: Sequence[Draft]) -> int:
        log = self.tables.log
        first = log.latest + 1
        for draft in drafts:
            log.append(draft.topic, draft.event, draft.facts, self.now)
            self.hints[watch_topic(draft.topic)] = ALL
        return first

    def was_skipped(self, number: int) -> bool:
        del number  # What was in memory is gone with it.
        return False

    def latest(self) -> int:
        return self.tables.log.latest

    def changes(self, topic: str, after: int, limit: int) -> Stretch:
        log = self.tables.log
        floor = log.floor(topic)
        return Stretch(*log.read(topic, max(after, floor), limit, self.allowance), floor)

    def prune(self, keep: int, older_than: int, never_after: int, limit: int) -> int:
        dropped = self.tables.log.prune(keep, older_than, never_after, limit)
        return dropped + self.tables.answers.forget(never_after, limit)

    def recall(self, command_id: str) -> bytes | None:
        return self.tables.answers.recall(command_id)

    def record(self, command_id: str, note: bytes) -> None:
        self.undo.note(self.tables.answers.notes, command_id)
        self.tables.answers.record(command_id, note, self.now)

    def settings(self, kind: Kind, name: str) -> Settings | None:
        return self.tables.settings[kind].get(name)

    def save(self, records: Sequence[Record]) -> None:
        for kind, same in groupby(records, type):
            SAVERS[kind](self, list(same))

    def save_settings(self, settings: Sequence[Settings]) -> None:
        for one in settings:
            self._note_settings(one.kind, one.name)
            self.tables.save_settings(one)

    def clear(self, kind: Kind, name: str, *, drop: bool) -> int:
        if drop:
            self._note_settings(kind, name)
            self.tables.drop_settings(kind, name)
        return self._clear_queue(name) if kind == "queue" else self._clear_dict(name)

    def _note_settings(self, kind: Kind, name: str) -> None:
        self.undo.note(self.tables.settings[kind], name)
        if kind == "queue":
            self.undo.queues.add(name)

    def names(self, kind: Kind, prefix: str, after: str | None, limit: int) -> list[Settings]:
        known = self.tables.settings[kind]
        names = [name for name in known if name.startswith(prefix) and (after is None or name > after)]
        return [known[name] for name in nsmallest(limit, names)]

    def outdated(self, limit: int, *, done: bool) -> Outdated:
        queues = [queue.name for queue in self.tables.queues.values() if queue.done] if done else []
        return Outdated(self.tables.dicts.stale(self.now, limit), nsmallest(limit, queues))


SAVERS: dict[type[Record], Callable[[MemoryTransaction, Sequence[Any]], None]] = {
    Message: MemoryTransaction.save_messages,
    Settings: MemoryTransaction.save_settings,
    Lane: MemoryTransaction.save_lanes,
    Entry: MemoryTransaction.save_entries,
    Lease: MemoryTransaction.save_leases,
    Shared: MemoryTransaction.save_leases,
    Share: MemoryTransaction.save_shares,
}
