"""A job that was put: wait for its result, follow it, cancel it."""

import builtins
import math
from collections.abc import AsyncGenerator
from typing import Any, ClassVar, Generic, Literal, TypeVar, Unpack, overload

from holdfast._async.flows.awaiting import result
from holdfast._async.flows.job_status import job_status, job_steps, retry, watch_job
from holdfast._async.flows.signalling import send
from holdfast._async.flows.working.cancelling import cancel
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.arguments.where import StoreHandle, Where
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec, check_duration, check_name, codec_for, encode_key
from holdfast.commands import Read
from holdfast.results import JobStatus, JobStep
from holdfast.workers.handlers.signatures import declared
from holdfast.workers.orders import Options, progress_of

R = TypeVar("R")


@show_options
class AsyncJob(StoreHandle, Generic[R]):
    """One message of a queue as a job: `id` names it, from any process; `type` is that of its result, where that is not plain data."""

    aio: ClassVar[Twin] = Twin()

    queue: str
    id: str
    _signals: Codec | None
    """The user's codec of the task, which encodes its signals, too."""

    @overload
    def __init__(self, queue: str, id: str, *, type: type[R], **where: Unpack[Where]) -> None: ...
    @overload
    def __init__(self: "AsyncJob[Any]", queue: str, id: str, *, codec: Codec | None = None, **where: Unpack[Where]) -> None: ...
    def __init__(self, queue: str, id: str, *, type: Any = None, codec: Codec | None = None, **where: Unpack[Where]) -> None:
        self.queue = check_name(queue, "queue")
        self.id = str(id)
        self._signals = codec
        super().__init__(codec_for(type, codec), **where)

    async def result(self, *, timeout_s: float | None = None) -> R:
        """What the function returned, None if it returned nothing; waits for it, without `timeout_s` for as long as that takes.

        Needs a worker that keeps results: those of tasks do, unless a task has `results=False`; those of consumers with `results=True`.
        With `timeout_s` raises `TimeoutError` after that long, 0 asks once. Raises `JobFailed` if the job is dead, `JobCancelled` if it
        was cancelled, `ResultNotKept` if it was done and its result is not kept, and `ResultMissing` if it is gone without a result or was
        never put.
        """
        wait_s = math.inf if timeout_s is None else timeout_s
        found: R = await result(self._reach().async_store, self.queue, self.id, self._codec, wait_s)
        return found

    async def status(self) -> JobStatus:
        """How it is at this moment: waiting, running or ended, how often it was tried, who runs it, what it reported."""
        return await job_status(self._reach().async_store, self.queue, self.id)

    def watch(self, *, poll_interval_s: float = 0.5) -> AsyncGenerator[JobStatus, None]:
        """Follow it: its status now, then each other one that is seen, until it has ended.

        Changes of its state wake it; reports of progress are looked for every `poll_interval_s`.
        """
        return watch_job(self._reach().async_store, self.queue, self.id, check_duration(poll_interval_s, "poll_interval_s"))

    async def retry(self) -> bool:
        """Give a dead letter another chance, with fresh attempts; False if it is not dead, or not in its queue any more."""
        return await retry(self._reach().async_store, self.queue, self.id)

    async def progress(self) -> Any:
        """What the handler reported last, None if it did not."""
        entries = await self._reach().async_store.execute(Read(progress_of(self.queue), [encode_key(self.id)]))
        return JSON.decode(entries.entries[0].value) if entries.entries else None

    async def send(self, name: str, payload: Any = None, *, id: str | None = None) -> bool:
        """Send it a signal: `job.wait(name)` in its function returns the payload, now or later.

        With an `id`, a signal of the same id is sent once, and False returned for a repetition. Raises `JobGone` if the job has ended.
        """
        codec = self._signals or codec_for(declared(builtins.type(payload)), None)
        return await send(self._reach().async_store, (self.queue, self.id), name, codec.encode(payload), id)

    async def steps(self) -> list[JobStep]:
        """What is recorded of a durable job, step by step; empty once it has ended."""
        return await job_steps(self._reach().async_store, self.queue, self.id)

    async def cancel(self, *, force: bool = False) -> Literal["cancelled", "requested", "absent"]:
        """Remove it if it waits; if it runs, ask its worker to end it. A thread can only be told, through its `job`.

        A durable job is asked in any case: its function gets `JobCancelled` where it waits, or with its next step, and may undo what it
        did. With `force` a job that is not running is removed, durable or not, with all that is recorded of it.
        """
        return await cancel(self._reach().async_store, self.queue, self.id, force=force)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.queue!r}, {self.id!r})"


def job_of(options: Options, id: str, client: ControlPlaneClient | None) -> AsyncJob[Any]:
    """The job with this id of a function whose jobs are run so."""
    job: AsyncJob[Any] = AsyncJob(options.queue, id, codec=options.result_codec, client=client)
    job._signals = options.handler.given_codec  # noqa: SLF001 - it is made here
    return job
