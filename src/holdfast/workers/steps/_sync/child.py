# Generated from src/holdfast/workers/steps/_async/child.py by tools/unasync.py; do not edit.
"""A job that a durable job has started."""

from typing import Any, Generic, TypeVar

from holdfast.codec import Codec
from holdfast.workers.steps._sync.steps import Steps
from holdfast.workers.steps.rows import Key

T = TypeVar("T")


class Child(Generic[T]):
    """A job that a durable job has started, and waits for later."""

    queue: str
    id: str

    def __init__(self, steps: Steps, key: Key, codec: Codec) -> None:
        self._steps = steps
        self._key = key
        self._codec = codec
        self.queue, self.id = steps.family.named(key)

    def result(self) -> T:
        """What its function returned, once it has; the worker is free meanwhile. Raises `ChildFailed` if there will be none."""
        found: Any = self._steps.family.result(self._key, self._codec)
        result: T = found
        return result

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r} of queue {self.queue!r}>"
