"""Messages that `get` returned and `task_done` has not acknowledged yet."""

from queue import Queue as StandardQueue

from holdfast.holding.with_block import Body
from holdfast.surfaces.localqueue.messages import QueueMessage


class Unfinished:
    """Messages that threads of this process got, oldest first."""

    def __init__(self) -> None:
        # The standard library's queue counts and waits: one item in it for each message here. Its mutex guards _messages, too.
        self._count: StandardQueue[None] = StandardQueue()
        self._messages: list[tuple[object, QueueMessage]] = []

    def add(self, message: QueueMessage) -> None:
        """Note what this thread got."""
        with self._count.mutex:
            self._messages.append((Body.current(), message))
        self._count.put_nowait(None)

    def pop(self) -> QueueMessage:
        """The oldest of this thread; for a thread without one, the oldest of all. ValueError where there is none."""
        with self._count.mutex:
            mine = next((index for index, (thread, _) in enumerate(self._messages) if thread is Body.current()), 0)
            if not self._messages:
                raise ValueError("task_done() called too many times: no message from get() is unfinished")
            return self._messages.pop(mine)[1]

    def done(self) -> None:
        """Count one as finished."""
        self._count.get_nowait()
        self._count.task_done()

    def join(self) -> None:
        """Wait until every one is finished."""
        self._count.join()
