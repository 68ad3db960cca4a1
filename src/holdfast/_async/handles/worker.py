"""Workers: what runs jobs, of tasks or of one function for one queue."""

import builtins
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Concatenate, Protocol, Self, TypeVar, Unpack, overload

from holdfast._async.flows.working.opening import AsyncOpening
from holdfast._async.flows.working.registering import workers
from holdfast._async.flows.working.shift import AsyncShift
from holdfast._async.handles.consumer import AsyncQueueFunction
from holdfast.aio_attribute import Twin
from holdfast.arguments.options import show_options
from holdfast.arguments.where import Where, reach
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec
from holdfast.codec.call_fields import GRACE_S, MAX_JOBS, SIGNALS, UNTIL_EMPTY
from holdfast.workers.handlers.definitions import define
from holdfast.workers.options import WorkerOptions
from holdfast.workers.orders import Orders, change_orders, make_orders
from holdfast.workers.registry import WorkerHealth, WorkerInfo
from holdfast.workers.running.background import AsyncSide
from holdfast.workers.signals import async_stop_signals

V = TypeVar("V")
R = TypeVar("R")
C = TypeVar("C")

STOPPED = WorkerHealth("stopped", 0, 0, 0, 0)


@show_options
class AsyncWorker(AsyncQueueFunction[V, R, C]):
    """Claims jobs under leases that are renewed while they run, and runs the function of each: what `@worker` and `Tasks.worker` give.

    Made of a function and a queue, it is the short form of `Tasks` with one `consumer`; calling it calls the function, and it puts there.
    The function takes the value, and the job too if it has another parameter named `job`. When it returns, the message is acknowledged;
    when it raises, the message is tried again after a back-off, kept in the store, until `max_attempts` failures make it a dead letter.
    `Snooze`, `Retry` and `Bury` choose otherwise. The options are those of `WorkerOptions`.

    To type checkers it is a `Worker[V, R, C]`: jobs of `V` with a result of `R`, and a function that returns `C`, which is `R` or, if it is
    async, a coroutine of it. A worker of tasks is a `Worker[Never, Any, Any]`: jobs are put by its tasks.
    """

    aio: ClassVar[Twin] = Twin()

    orders: Orders

    @overload
    def __init__(
        self: "AsyncWorker[V, R, Coroutine[Any, Any, R]]",
        function: Callable[Concatenate[V, ...], Coroutine[Any, Any, R]],
        queue: str,
        *,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **options: Unpack[WorkerOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: "AsyncWorker[V, R, R]",
        function: Callable[Concatenate[V, ...], R],
        queue: str,
        *,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **options: Unpack[WorkerOptions],
    ) -> None: ...
    def __init__(
        self,
        function: Callable[..., Any],
        queue: str,
        *,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **options: Unpack[WorkerOptions],
    ) -> None:
        self._set(make_orders(function, queue, **options), client, base_url)

    @classmethod
    def of_orders(
        cls, orders: Orders, *, client: ControlPlaneClient | None = None, base_url: str | None = None
    ) -> "AsyncWorker[Any, Any, Any]":
        """A worker that does what these orders say."""
        made: AsyncWorker[Any, Any, Any] = cls.__new__(cls)
        made._set(orders, client, base_url)
        return made

    def _set(self, orders: Orders, client: ControlPlaneClient | None, base_url: str | None) -> None:
        super().__init__(orders.table.only_consumer, client=client, base_url=base_url)
        self.orders = orders
        self._opening: AsyncOpening | None = None
        self._shift: AsyncShift | None = None
        self._side: AsyncSide | None = None

    async def run(self, *, until_empty: bool = False, max_jobs: int | None = None, signals: bool = True) -> None:
        """Work until `stop`, or until nothing is due and nothing runs, or until so many jobs were run.

        With `signals`, in the main thread, SIGTERM and SIGINT stop it: what runs may finish within `grace_s`, the rest is given back and
        burns nothing; the second signal gives no grace.
        """
        UNTIL_EMPTY.check(until_empty)
        SIGNALS.check(signals)
        opening = self._open(until_empty=until_empty, max_jobs=MAX_JOBS.check(max_jobs))
        if not signals:
            await self._work(opening)
            return
        with async_stop_signals(self.tell_stop):
            await self._work(opening)

    async def start(self) -> None:
        """Work beside the caller, until `stop`."""
        opening = self._open()
        self._side = AsyncSide(lambda: self._work(opening), f"holdfast-worker {self.orders.name}")

    async def stop(self, *, grace_s: float | None = None) -> None:
        """Claim no more, let jobs finish within the grace time, give back the rest, and return when that is done."""
        self._end(GRACE_S.check(grace_s))
        side, self._side = self._side, None
        if side is not None:
            await side.join()

    def tell_stop(self) -> None:
        """Ask it to stop, as a first signal does, and return at once; a second time gives no grace."""
        self._end()

    def _end(self, grace_s: float | None = None) -> None:
        if self._shift is not None:
            self._shift.stop(grace_s)
        elif self._opening is not None:
            self._opening.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    def pause(self) -> None:
        """Claim no more until `resume`, this worker alone; `Queue.pause` is for all of them."""
        if self._shift is not None:
            self._shift.pause()

    def resume(self) -> None:
        """Claim again."""
        if self._shift is not None:
            self._shift.resume()

    @property
    def health(self) -> WorkerHealth:
        """How it is at this moment."""
        if self._shift is not None:
            return self._shift.health
        return STOPPED if self._opening is None else self._opening.health

    @classmethod
    async def list(cls, **where: Unpack[Where]) -> "builtins.list[WorkerInfo]":
        """Every worker of the store that lives, in order of their names."""
        return await workers(reach(**where).async_store)

    def _open(self, *, until_empty: bool = False, max_jobs: int | None = None) -> AsyncOpening:
        """Begin to open the store; raises errors that waiting cannot fix."""
        if self.health.state != "stopped":
            raise RuntimeError(f"worker {self.orders.name} is already running: make another, or stop it first")
        opening = AsyncOpening(self.orders.name, partial(self._begin, until_empty=until_empty, max_jobs=max_jobs))
        # Before it is tried: who wants it to stop from now on tells either of the two.
        self._shift, self._opening = None, opening
        try:
            opening.try_once()
        except BaseException:
            self._opening = None
            raise
        return opening

    def _begin(self, *, until_empty: bool = False, max_jobs: int | None = None) -> AsyncShift:
        client = self.client
        client.check_renewal()
        self._shift = AsyncShift(client, self.orders, until_empty=until_empty, max_jobs=max_jobs)
        return self._shift

    async def _work(self, opening: AsyncOpening) -> None:
        shift = None
        try:
            shift = await opening.wait()
        finally:
            self._opening = None
            self._shift = shift
        if shift is not None:
            await shift.run()

    def _codecs(self) -> Iterable[Codec]:
        return [codec for options in self.orders.table.all() for codec in options.codecs]

    def changed(
        self, *, client: ControlPlaneClient | None = None, base_url: str | None = None, **options: Unpack[WorkerOptions]
    ) -> "AsyncWorker[V, R, C]":
        """A worker of the same function and queue with other options; a `client` or `base_url` takes the place of either."""
        if client is None and base_url is None:
            client, base_url = self._client, self._base_url
        return AsyncWorker.of_orders(change_orders(self.orders, **options), client=client, base_url=base_url)

    def __repr__(self) -> str:
        if self._options is None:
            return f"<{type(self).__name__} {self.orders.name!r}: {self.orders.summary.rstrip(',')}>"
        return f"<{type(self).__name__} {self.orders.name!r} of queue {self.queue!r}: {self.options.handler.name}>"


class AsyncWorkerDecorator(Protocol):
    """Makes a worker of a function."""

    @overload
    def __call__(self, function: Callable[Concatenate[V, ...], Coroutine[Any, Any, R]], /) -> AsyncWorker[V, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[V, ...], R], /) -> AsyncWorker[V, R, R]: ...


def worker(
    queue: str, *, client: ControlPlaneClient | None = None, base_url: str | None = None, **options: Unpack[WorkerOptions]
) -> AsyncWorkerDecorator:
    """Make a worker of the function below: `@worker("mail", concurrency=4)`. The options are those of `WorkerOptions`.

    A queue has one function: a second one at the top of a module raises `ValueError`, since each would get jobs of the other.
    """
    if not isinstance(queue, str):
        name = getattr(queue, "__name__", "the function")
        raise TypeError(f'@worker needs the name of a queue: write @worker("{name}") above def {name}, with the name of your queue')

    def made(function: Callable[..., Any]) -> Any:
        worker = AsyncWorker(function, queue, client=client, base_url=base_url, **options)
        define(function, base_url if client is None else client, queue)
        return worker

    return made
