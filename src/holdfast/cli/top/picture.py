"""What `holdfast top` shows: a store at one moment."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.cli.queue_counts import queue_counts

if TYPE_CHECKING:
    from holdfast import ControlPlaneClient


class QueueRow(Struct, frozen=True):
    """A queue at one moment."""

    name: str
    ready: int
    delayed: int
    leased: int
    buffered: int
    dead: int
    oldest_ready_s: float | None
    workers: int
    """Living ones that serve it."""


class WorkerRow(Struct, frozen=True):
    """A living worker at one moment."""

    name: str
    queues: list[str]
    state: str
    running: int
    concurrency: int
    done: int
    failed: int


class Picture(Struct, frozen=True):
    """A store at one moment."""

    url: str
    at: datetime
    queues: list[QueueRow]
    workers: list[WorkerRow]


def take_picture(client: "ControlPlaneClient", prefix: str = "") -> Picture:
    """Look at every queue whose name begins so, those with the longest wait first, and at every worker."""
    from holdfast import Worker

    living = Worker.list(client=client)
    queues = []
    for queue in queue_counts(client.store, prefix):
        stats, serving = queue.stats, sum(worker.serves(queue.name) for worker in living)
        counts = (stats.ready, stats.delayed, stats.leased, stats.buffered, stats.dead)
        queues.append(QueueRow(queue.name, *counts, stats.oldest_ready_s, serving))
    queues.sort(key=lambda row: (-(row.oldest_ready_s or 0.0), -row.ready, row.name))
    workers = [
        WorkerRow(
            one.name,
            list(one.queues or (one.queue,)),
            one.health.state,
            one.health.running,
            one.concurrency,
            one.health.done,
            one.health.failed,
        )
        for one in living
    ]
    return Picture(client.url, datetime.now(UTC), queues, workers)
