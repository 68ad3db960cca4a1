# Generated from src/holdfast/_async/handles/consumer.py by tools/unasync.py; do not edit.
"""A function that takes whatever is put into a queue."""

import builtins
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar, Unpack

from holdfast._sync.flows.putting import put_by
from holdfast._sync.handles.job import Job, job_of
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.arguments.put_options import ManyOptions, PutOptions, make_item, make_items
from holdfast.arguments.where import JobHandle
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec
from holdfast.commands import Put
from holdfast.workers.orders import Options

V = TypeVar("V")
R = TypeVar("R")
C = TypeVar("C")


@show_options
class QueueFunction(JobHandle, Generic[V, R, C]):
    """A function that takes whatever is put into a queue, and puts there."""

    def __init__(self, options: Options | None, *, client: ControlPlaneClient | None = None, base_url: str | None = None) -> None:
        self._options = options
        self._client = client
        self._base_url = base_url

    @property
    def options(self) -> Options:
        """How its jobs are run; TypeError for a worker of tasks, which has no function of its own."""
        if self._options is None:
            raise TypeError(f"{self!r} has no function of its own: call and put its tasks")
        return self._options

    @property
    def function(self) -> Callable[..., C]:
        """The function itself."""
        return self.options.handler.function

    def __call__(self, value: V, /, *args: Any, **kwargs: Any) -> C:
        """Call the function itself, here and now: no queue takes part."""
        return self.function(value, *args, **kwargs)

    @property
    def queue(self) -> str:
        """The name of the queue."""
        return self.options.queue

    def put(self, value: V, **options: Unpack[PutOptions]) -> Job[R]:
        """Put a job for this function; the options are those of `Queue.put`."""
        item = make_item(value, self.options.handler.codec, options)
        puts = put_by(self.client, Put(self.queue, [item]))
        return self.job(puts.ids[0])

    def put_many(self, values: Iterable[V], **options: Unpack[ManyOptions]) -> builtins.list[Job[R]]:
        """Put several jobs, all or none."""
        items = make_items(values, self.options.handler.codec, options)
        if not items:
            return []
        puts = put_by(self.client, Put(self.queue, items))
        return [self.job(message_id) for message_id in puts.ids]

    def job(self, id: str) -> Job[R]:
        """The job with this id."""
        return job_of(self.options, id, self.client)

    def _codecs(self) -> Iterable[Codec]:
        return self.options.codecs


class Consumer(QueueFunction[V, R, C]):
    """The function of a queue for messages that name no task; calling it calls the function, here and now.

    It takes the value, and the job too if it has another parameter named `job`. `Tasks.consumer` makes one.
    """

    aio: ClassVar[Twin] = Twin()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of queue {self.queue!r}: {self.options.handler.name}>"
