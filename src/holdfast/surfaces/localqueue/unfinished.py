"""What `get` handed out and `task_done` has not acknowledged yet, by thread."""

from collections import deque
from queue import Queue as StandardQueue

from holdfast.bodies import Body
from holdfast.surfaces.localqueue.messages import QueueMessage


class Unfinished:
    """Messages of this process's threads; each thread finishes its own, oldest first."""

    def __init__(self) -> None:
        # The standard library's queue counts and waits: one item in it for each message here.
        self._count: StandardQueue[None] = StandardQueue()
        self._by_thread: dict[object, deque[QueueMessage]] = {}

    def add(self, message: QueueMessage) -> None:
        """Note what this thread got."""
        self._by_thread.setdefault(Body.current(), deque()).append(message)
        self._count.put_nowait(None)

    def pop(self) -> QueueMessage:
        """The oldest of this thread; ValueError where it has none."""
        mine = self._by_thread.get(Body.current())
        if not mine:
            raise ValueError("task_done() called too many times: this thread has no message from get() that is unfinished")
        return mine.popleft()

    def done(self) -> None:
        """Count one as finished."""
        self._count.get_nowait()
        self._count.task_done()

    def join(self) -> None:
        """Wait until every one is finished."""
        self._count.join()
