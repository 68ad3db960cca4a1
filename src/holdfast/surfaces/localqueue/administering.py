"""Looking at a queue and after it: sizes, workers, dead letters."""

from holdfast.clock import wall_us
from holdfast.surfaces.localqueue.configured import ConfiguredQueue
from holdfast.surfaces.localqueue.messages import QueueMessage, QueueStats
from holdfast.surfaces.localqueue.policies import UNBOUNDED


class AdministeredQueue(ConfiguredQueue):
    """The part of a queue that holds no lease."""

    def inspect(self, message_id: str) -> QueueMessage | None:
        """Look at a message without touching it."""
        return self.backend.inspect(message_id)

    def qsize(self) -> int:
        """How many messages are due."""
        return self.backend.qsize()

    def empty(self) -> bool:
        """Whether none is due."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Whether a put would have to wait."""
        return self.backpressure != UNBOUNDED and self.backpressure.is_full(qsize=self.qsize())

    def stats(self) -> QueueStats:
        """How many messages are where, who holds them, and what workers did."""
        return self.backend.stats()

    def record_worker_heartbeat(self, worker_id: str) -> None:
        """Note that a worker is alive, now."""
        if not worker_id:
            raise ValueError("worker_id cannot be empty")
        self.backend.record_worker_heartbeat(worker_id, wall_us() / 1_000_000)

    def dead_letters(self, limit: int | None = None) -> list[QueueMessage]:
        """The dead letters, the longest dead first."""
        if limit is not None and limit < 0:
            raise ValueError(f"limit cannot be negative, and is {limit}")
        return self.backend.dead_letters(limit)

    def requeue_dead(self, message: QueueMessage, delay: float = 0.0) -> bool:
        """Give a dead letter another chance: the same id, the back of the line, a fresh budget.

        False if it is not dead, or stays dead because newer work of its key waits or is being done.
        """
        check_duration(delay, "delay")
        return self.backend.requeue_dead(message.id, delay)

    def prune_dead_letters(self, older_than: float) -> int:
        """Remove what has been dead for longer than so many seconds; answer how many."""
        check_duration(older_than, "older_than")
        return self.backend.prune_dead_letters(older_than)

    def count_dead_letters_older_than(self, older_than: float) -> int:
        """How many a prune would remove."""
        check_duration(older_than, "older_than")
        return self.backend.count_dead_letters_older_than(older_than)

    def purge(self) -> int:
        """Remove every message, whatever its state; answer how many."""
        return self.backend.purge()


def check_duration(seconds: float, what: str) -> None:
    """Refuse a negative number of seconds."""
    if not seconds >= 0:
        raise ValueError(f"{what} cannot be negative, and is {seconds}")
