"""Holdfast in a Starlette or FastAPI application: a client and workers that live as long as it does, and dependencies.

lifespan = holdfast_lifespan("sqlite:///jobs.db", workers=[send])
app = FastAPI(lifespan=lifespan)
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypedDict

from holdfast._async.handles.mapping import AsyncDict
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.errors import MissingExtra

try:
    from starlette.requests import HTTPConnection
except ImportError as _error:
    raise MissingExtra("holdfast.integrations.starlette needs Starlette: pip install 'holdfast[starlette]'") from _error


class HoldfastState(TypedDict):
    """What a lifespan gives to every request."""

    holdfast: ControlPlaneClient


Lifespan = Callable[[Any], AbstractAsyncContextManager[HoldfastState]]


def holdfast_lifespan(
    url: str | None = None, *, token: str | None = None, workers: Iterable[Worker[Any, Any, Any] | AsyncWorker[Any, Any, Any]] = ()
) -> Lifespan:
    """A lifespan that opens a client, by default of `HOLDFAST_URL`, and runs workers beside the requests.

    When the application ends, the workers stop as they were told to: jobs may finish within `grace_s`, the rest is given back. In a
    lifespan of your own use it as a context manager, and yield what it gives on to requests: `async with lifespan(app) as state: yield
    state`.
    """
    workers = list(workers)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[HoldfastState]:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(ControlPlaneClient(url, token=token))
            for worker in workers:
                await stack.enter_async_context(worker.aio.changed(client=client))
            yield {"holdfast": client}

    return lifespan


def holdfast_client(connection: HTTPConnection) -> ControlPlaneClient:
    """The client of the application that serves a request: `Depends(holdfast_client)`."""
    client: ControlPlaneClient | None = getattr(connection.state, "holdfast", None)
    if client is None:
        raise RuntimeError("this application has no client: give it lifespan=holdfast_lifespan(…), and yield its state on if you wrap it")
    return client


def queue_named(name: str) -> Callable[[HTTPConnection], AsyncQueue[Any]]:
    """A dependency: the queue of that name, for tasks. `jobs: Annotated[AsyncQueue, Depends(queue_named("jobs"))]`."""

    def queue(connection: HTTPConnection) -> AsyncQueue[Any]:
        return AsyncQueue(name, client=holdfast_client(connection))

    return queue


def dict_named(name: str) -> Callable[[HTTPConnection], AsyncDict[Any]]:
    """A dependency: the dict of that name, for tasks."""

    def shared(connection: HTTPConnection) -> AsyncDict[Any]:
        return AsyncDict(name, client=holdfast_client(connection))

    return shared
