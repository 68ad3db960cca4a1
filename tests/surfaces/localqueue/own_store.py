"""A queue store as a user of localqueue writes one: a class with the fifteen methods of the protocol, and nothing of Holdfast's."""

import time
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

from holdfast.surfaces.localqueue import QueueMessage, QueueStats


class OwnStore:
    """Messages in lists."""

    def __init__(self) -> None:
        self.messages: dict[str, list[QueueMessage]] = {}
        self.heartbeats: dict[str, dict[str, float]] = {}
        self.leases: dict[str, Counter[str]] = {}
        self.calls: list[str] = []

    def enqueue(self, queue: str, value: Any, *, available_at: float, dedupe_key: str | None = None, priority: int = 0) -> QueueMessage:
        self.calls.append("enqueue")
        for known in self.messages.get(queue, []):
            if dedupe_key is not None and known.dedupe_key == dedupe_key:
                return known
        message = QueueMessage(
            uuid.uuid4().hex, value, queue, created_at=time.time(), available_at=available_at, dedupe_key=dedupe_key, priority=priority
        )
        self.messages.setdefault(queue, []).append(message)
        return message

    def dequeue(self, queue: str, *, lease_timeout: float, now: float, leased_by: str | None = None) -> QueueMessage | None:
        for message in self.messages.get(queue, []):
            is_free = message.state == "ready" and message.available_at <= now
            if is_free or (message.state == "inflight" and (message.leased_until or 0.0) <= now):
                leased = replace(
                    message, state="inflight", attempts=message.attempts + 1, leased_until=now + lease_timeout, leased_by=leased_by
                )
                self._put_in_place(leased)
                self.leases.setdefault(queue, Counter())[leased_by or ""] += 1
                return leased
        return None

    def get(self, queue: str, message_id: str) -> QueueMessage | None:
        return next((one for one in self.messages.get(queue, []) if one.id == message_id), None)

    def ack(self, queue: str, message_id: str) -> bool:
        self.calls.append("ack")
        before = self.messages.get(queue, [])
        self.messages[queue] = [one for one in before if one.id != message_id]
        return len(self.messages[queue]) < len(before)

    def release(
        self,
        queue: str,
        message_id: str,
        *,
        available_at: float,
        last_error: dict[str, Any] | None = None,
        failed_at: float | None = None,
    ) -> bool:
        return self._change(queue, message_id, state="ready", available_at=available_at, last_error=last_error, failed_at=failed_at)

    def dead_letter(self, queue: str, message_id: str, *, last_error: dict[str, Any] | None = None, failed_at: float | None = None) -> bool:
        return self._change(queue, message_id, state="dead", last_error=last_error, failed_at=failed_at)

    def qsize(self, queue: str, *, now: float) -> int:
        return sum(one.state == "ready" and one.available_at <= now for one in self.messages.get(queue, []))

    def stats(self, queue: str, *, now: float) -> QueueStats:
        states = Counter(one.state for one in self.messages.get(queue, []))
        return QueueStats(
            ready=self.qsize(queue, now=now),
            inflight=states["inflight"],
            dead=states["dead"],
            total=sum(states.values()),
            last_seen_by_worker_id=self.heartbeats.get(queue, {}),
        )

    def record_worker_heartbeat(self, queue: str, worker_id: str, *, now: float) -> None:
        self.heartbeats.setdefault(queue, {})[worker_id] = now

    def dead_letters(self, queue: str, *, limit: int | None = None) -> list[QueueMessage]:
        return [one for one in self.messages.get(queue, []) if one.state == "dead"][:limit]

    def requeue_dead(self, queue: str, message_id: str, *, available_at: float) -> bool:
        found = self.get(queue, message_id)
        return found is not None and found.state == "dead" and self._change(queue, message_id, state="ready", available_at=available_at)

    def prune_dead_letters(self, queue: str, *, older_than: float, now: float) -> int:
        old = [one for one in self.dead_letters(queue) if now - (one.failed_at or one.created_at) >= older_than]
        return sum(self.ack(queue, one.id) for one in old)

    def count_dead_letters_older_than(self, queue: str, *, older_than: float, now: float) -> int:
        return sum(now - (one.failed_at or one.created_at) >= older_than for one in self.dead_letters(queue))

    def empty(self, queue: str, *, now: float) -> bool:
        return self.qsize(queue, now=now) == 0

    def purge(self, queue: str) -> int:
        return len(self.messages.pop(queue, []))

    def _change(self, queue: str, message_id: str, **changes: Any) -> bool:
        found = self.get(queue, message_id)
        if found is not None:
            self._put_in_place(replace(found, leased_until=None, leased_by=None, **changes))
        return found is not None

    def _put_in_place(self, message: QueueMessage) -> None:
        self.messages[message.queue] = [message if one.id == message.id else one for one in self.messages[message.queue]]
