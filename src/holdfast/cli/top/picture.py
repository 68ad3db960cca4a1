"""What `holdfast top` shows: a store at one moment."""

import math
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast._sync.flows.rating import each_rates
from holdfast.cli.queue_counts import queue_counts
from holdfast.views.log_rates import LogMemory

if TYPE_CHECKING:
    from holdfast import ControlPlaneClient, QueueRates

RATED: Final = 50
"""Of so many queues the rates are read."""
SINCE_S: Final = 60.0
"""They are those of so many seconds."""
EVERY_S: Final = 5.0
"""How often they are read."""


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
    put_per_s: float | None = None
    """Of the last minute, or as far back as the log was read; None if this was not read for the queue, as for `done_per_s`."""
    done_per_s: float | None = None
    failed_share: float | None = None
    """Of the claims that ended in that time; None if none did."""


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


class Rates:
    """The rates of some queues: reading events costs more than reading counts, so they are read again only now and then."""

    def __init__(self, client: "ControlPlaneClient", now_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now_s = now_s
        self._known: dict[str, QueueRates] = {}
        self._memory = LogMemory()
        self._read_at = -math.inf

    def of(self, names: Sequence[str]) -> "dict[str, QueueRates]":
        """Those of these queues; of one that was not there at the last reading they come with the next."""
        if self._now_s() >= self._read_at + EVERY_S:
            self._known = each_rates(self._client.store, names, SINCE_S, self._memory)
            self._read_at = self._now_s()
        return self._known


def take_picture(client: "ControlPlaneClient", prefix: str = "", rates: Rates | None = None) -> Picture:
    """Look at every queue whose name begins so, those with the longest wait first, and at every worker.

    Rates are read for the first queues of the picture.
    """
    from holdfast import Worker

    living = Worker.list(client=client)
    queues = []
    for queue in queue_counts(client.store, prefix):
        stats, serving = queue.stats, sum(worker.serves(queue.name) for worker in living)
        counts = (stats.ready, stats.delayed, stats.leased, stats.buffered, stats.dead)
        queues.append(QueueRow(queue.name, *counts, stats.oldest_ready_s, serving))
    queues.sort(key=lambda row: (-(row.oldest_ready_s or 0.0), -row.ready, row.name))
    found = (rates or Rates(client)).of([row.name for row in queues[:RATED]])
    queues = [_rated(row, found[row.name]) if row.name in found else row for row in queues]
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


def _rated(row: QueueRow, rates: "QueueRates") -> QueueRow:
    put_per_s = rates.put / rates.window_s if rates.window_s else 0.0
    return replace(row, put_per_s=put_per_s, done_per_s=rates.done_per_s, failed_share=rates.failed_share)
