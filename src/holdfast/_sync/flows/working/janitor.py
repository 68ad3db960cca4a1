# Generated from src/holdfast/_async/flows/working/janitor.py by tools/unasync.py; do not edit.
"""Looks for what durable jobs left behind whose message is gone, and gives it an end."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

from holdfast.codec import decode_key, encode_key
from holdfast.commands import Acquire, Browse, Change, Clear, Names, Read, Write
from holdfast.errors import Closed, HoldfastError
from holdfast.ids import new_id
from holdfast.records import Entry
from holdfast.stores import Store
from holdfast.workers.running.background import Pause
from holdfast.workers.steps.rows import LONG, maps_prefix, signals_of, steps_of

EVERY_S: Final = 600.0
"""How often one worker of a queue looks."""

KEEP_S: Final = 30 * 86_400.0
"""How long rows stay whose message is gone: a dead letter that was moved elsewhere may come back."""

PAGE: Final = 1_000
IDS: Final = 500

_log = logging.getLogger("holdfast.worker")


class Janitor:
    """One of the workers of each queue looks after it now and then."""

    def __init__(self, store: Store, queues: Sequence[str], holder: str) -> None:
        self._store = store
        self._queues = queues
        self._holder = holder
        self._pause = Pause()

    def stop(self) -> None:
        """Look no more."""
        self._pause.end()

    def run(self) -> None:
        """Look every few minutes, until it is stopped."""
        while self._pause.sleep(EVERY_S):
            try:
                for queue in self._queues:
                    if self._is_turn(queue):
                        self.look(queue)
            except Closed:
                return
            except HoldfastError as error:
                _log.debug("what durable jobs left behind cannot be looked at for now: %s", error)

    def _is_turn(self, queue: str) -> bool:
        """Whether no other worker of the queue has looked of late: the lease is not given back, it ends by itself."""
        lease_id = new_id()
        got = self._store.execute(Acquire(None, encode_key(("janitor", queue)), self._holder, lease_id, EVERY_S))
        return bool(got.lease.lease_id == lease_id)

    def look(self, queue: str) -> int:
        """Give an end to everything of jobs that are gone; returns how many entries that were."""
        found = 0
        for name in (steps_of(queue), signals_of(queue)):
            after: str | None = None
            while True:
                page = self._store.execute(Read(name, after=after, limit=PAGE))
                found += self._end(queue, name, [entry for entry in page.entries if entry.expires_at is None])
                if not page.more:
                    break
                after = page.entries[-1].key
        self._drop_maps(queue)
        return found

    def _end(self, queue: str, name: str, entries: list[Entry]) -> int:
        gone = self._gone(queue, {_id_of(entry): None for entry in entries})
        left = [entry for entry in entries if _id_of(entry) in gone]
        changes = [Change(entry.key, value=entry.value, expect="revision", revision=entry.revision, ttl_s=KEEP_S) for entry in left]
        if changes:
            self._store.execute(Write(name, changes))
        return len(changes)

    def _gone(self, queue: str, ids: Iterable[str]) -> set[str]:
        """Those of the ids that are not in the queue."""
        asked, there = list(ids), set[str]()
        for start in range(0, len(asked), IDS):
            some = asked[start : start + IDS]
            browsed = self._store.execute(Browse(queue, ids=some))
            there |= set(some) if browsed.more else {message.id for message in browsed.living}
        return set(asked) - there

    def _drop_maps(self, queue: str) -> None:
        """Drop the dicts in which children report to parents that are gone."""
        prefix = maps_prefix(queue)
        named = (self._store.execute(Names("dict", prefix))).settings
        named = [settings for settings in named if not settings.name.startswith(prefix + LONG)]  # Whose they are is not in their names.
        parents = {settings.name: settings.name.removeprefix(prefix).rpartition("-")[0] for settings in named}
        gone = self._gone(queue, dict.fromkeys(parents.values()))
        for name, parent in parents.items():
            if parent in gone:
                self._store.execute(Clear("dict", name, drop=True))


def _id_of(entry: Entry) -> str:
    parts: Any = decode_key(entry.key)
    return str(parts[0])
