"""Decorators that make a function a worker, and the relay of what commits left to do; needs the extra `retry`."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from msgspec import UNSET, UnsetType

from holdfast.errors import MissingExtra
from holdfast.surfaces.localqueue.persistent_queue import PersistentQueue
from holdfast.surfaces.localqueue.worker_config import PersistentWorkerConfig

try:
    from holdfast.surfaces.localqueue._async.relay import relay_commits as relay_commits_async
    from holdfast.surfaces.localqueue._async.worker_calls import AsyncWorkerCalls
    from holdfast.surfaces.localqueue._sync.relay import relay_commits
    from holdfast.surfaces.localqueue._sync.worker_calls import WorkerCalls
except ModuleNotFoundError as _missing:
    if _missing.name != "tenacity":
        raise
    raise MissingExtra(
        "the workers of holdfast.surfaces.localqueue need the package 'tenacity': pip install 'holdfast[retry]'"
    ) from _missing

__all__ = ["AsyncWorkerCalls", "WorkerCalls", "persistent_async_worker", "persistent_worker", "relay_commits", "relay_commits_async"]

Handler = Callable[..., Any]


def persistent_worker(
    queue: PersistentQueue[Any],
    config: PersistentWorkerConfig | None = None,
    *,
    worker_id: str | None = None,
    dead_letter_on_failure: bool | UnsetType = UNSET,
    dead_letter_on_exhaustion: bool | UnsetType = UNSET,
    release_delay: float | UnsetType = UNSET,
    **retry_kwargs: Any,
) -> Callable[[Handler], Handler]:
    """Make a decorator: each call of the decorated function waits for a message and handles it with its value as first argument.

    What is given here wins over `config`, and that over the queue's retry defaults. The other options are those of
    `PersistentWorkerConfig`.
    """
    resolved = (config or queue.build_worker_config()).with_overrides(
        dead_letter_on_failure=dead_letter_on_failure,
        dead_letter_on_exhaustion=dead_letter_on_exhaustion,
        release_delay=release_delay,
        **retry_kwargs,
    )

    def decorate(handler: Handler) -> Handler:
        calls = WorkerCalls(queue, handler, resolved, worker_id)

        @wraps(handler)
        def work(*args: Any, **kwargs: Any) -> Any:
            return calls(*args, **kwargs)

        return work

    return decorate


def persistent_async_worker(
    queue: PersistentQueue[Any],
    config: PersistentWorkerConfig | None = None,
    *,
    worker_id: str | None = None,
    dead_letter_on_failure: bool | UnsetType = UNSET,
    dead_letter_on_exhaustion: bool | UnsetType = UNSET,
    release_delay: float | UnsetType = UNSET,
    **retry_kwargs: Any,
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]]:
    """Make a decorator of a coroutine function; see `persistent_worker`. A call that is cancelled gives its message back."""
    resolved = (config or queue.build_worker_config()).with_overrides(
        dead_letter_on_failure=dead_letter_on_failure,
        dead_letter_on_exhaustion=dead_letter_on_exhaustion,
        release_delay=release_delay,
        **retry_kwargs,
    )

    def decorate(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        calls = AsyncWorkerCalls(queue, handler, resolved, worker_id)

        @wraps(handler)
        async def work(*args: Any, **kwargs: Any) -> Any:
            return await calls(*args, **kwargs)

        return work

    return decorate
