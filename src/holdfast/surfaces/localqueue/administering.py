"""Looking at a queue and after it: sizes, workers, dead letters."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from holdfast import Dict
from holdfast._sync.flows import browsing
from holdfast.clock import wall_us
from holdfast.commands import Browse, Clear, Count, Filter, Move
from holdfast.surfaces.localqueue.configured import ConfiguredQueue
from holdfast.surfaces.localqueue.messages import QueueMessage, QueueStats, counted, looked_at

WORKERS = "localqueue-workers"
"""The dict of what workers did and when they were seen, by queue."""


class AdministeredQueue(ConfiguredQueue):
    """The part of a queue that holds no lease."""

    def inspect(self, message_id: str) -> QueueMessage | None:
        """Look at a message without touching it."""
        return self._look(self.name, message_id)

    def qsize(self) -> int:
        """How many messages are due."""
        return self.stats_now().ready

    def empty(self) -> bool:
        """Whether none is due."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Whether a put would have to wait."""
        stats = self.client.store.execute(Count(self.name))
        return self.backpressure.is_full(qsize=stats.ready + stats.delayed)

    def stats(self) -> QueueStats:
        """How many messages are where, who holds them, and what workers did."""
        return self.stats_now(dict(self._workers.items(prefix=(self.name,))))

    def stats_now(self, workers: Mapping[Any, Any] | None = None) -> QueueStats:
        """The sizes, with what is known of workers."""
        known: dict[str, dict[str, Any]] = {"leases": {}, "seen": {}}
        for (_, what, worker_id), value in (workers or {}).items():
            known[what][worker_id] = value
        return counted(self.client.store.execute(Count(self.name)), known["leases"], known["seen"])

    def record_worker_heartbeat(self, worker_id: str) -> None:
        """Note that a worker is alive, now."""
        if not worker_id:
            raise ValueError("worker_id cannot be empty")
        self._workers.put((self.name, "seen", worker_id), wall_us() / 1_000_000)

    def dead_letters(self, limit: int | None = None) -> list[QueueMessage]:
        """The dead letters, the longest dead first."""
        if limit is not None and limit < 0:
            raise ValueError(f"limit cannot be negative, and is {limit}")
        store = self.client.store
        offset_us = store.wall_offset_us()
        pages = browsing.pages(store, self.name, "dead")
        dead = (looked_at(message, page.now, offset_us) for page in pages for message in page.messages)
        return list(islice(dead, limit))

    def requeue_dead(self, message: QueueMessage, delay: float = 0.0) -> bool:
        """Give a dead letter another chance: the same id, the back of the line, a fresh budget.

        False if it is not dead, or stays dead because newer work of its key waits or is being done.
        """
        check_duration(delay, "delay")
        found = self._look(self.name, message.id)
        return found is not None and found.state == "dead" and self._move(Move(self.name, "ready", [message.id], delay_s=delay))

    def prune_dead_letters(self, older_than: float) -> int:
        """Remove what has been dead for longer than so many seconds; answer how many."""
        check_duration(older_than, "older_than")
        return len(browsing.move_all(self.client.store, Move(self.name, "gone", None, "dead", Filter(older_than))).ids)

    def count_dead_letters_older_than(self, older_than: float) -> int:
        """How many a prune would remove."""
        check_duration(older_than, "older_than")
        return sum(len(page.messages) for page in browsing.pages(self.client.store, self.name, "dead", Filter(older_than)))

    def purge(self) -> int:
        """Remove every message, whatever its state; answer how many."""
        return self.client.store.execute(Clear("queue", self.name))

    @property
    def _workers(self) -> Dict[Any]:
        return Dict.from_name(WORKERS, client=self.client)

    def _look(self, queue: str, message_id: str) -> QueueMessage | None:
        store = self.client.store
        page = store.execute(Browse(queue, ids=[message_id]))
        return looked_at(page.messages[0], page.now, store.wall_offset_us()) if page.messages else None

    def _move(self, command: Move) -> bool:
        return bool(self.client.store.execute(command).ids)


def check_duration(seconds: float, what: str) -> None:
    """Refuse a negative number of seconds."""
    if not seconds >= 0:
        raise ValueError(f"{what} cannot be negative, and is {seconds}")
