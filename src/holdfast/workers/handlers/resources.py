"""What functions are given besides their arguments, and what is done around each job."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, Literal, TypeVar, overload

from msgspec import Struct

T = TypeVar("T")

Per = Literal["worker", "job"]
Around = Callable[..., AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]


class Resource(Struct, frozen=True):
    """What a parameter is given: the default value that `Use` makes."""

    factory: Callable[[], Any]
    per: Per


@overload
def Use(factory: Callable[[], AbstractContextManager[T]], *, per: Per = "worker") -> T: ...
@overload
def Use(factory: Callable[[], AbstractAsyncContextManager[T]], *, per: Per = "worker") -> T: ...
@overload
def Use(factory: Callable[[], Iterator[T]], *, per: Per = "worker") -> T: ...
@overload
def Use(factory: Callable[[], AsyncIterator[T]], *, per: Per = "worker") -> T: ...
@overload
def Use(factory: Callable[[], Awaitable[T]], *, per: Per = "worker") -> T: ...
@overload
def Use(factory: Callable[[], T], *, per: Per = "worker") -> T: ...
def Use(factory: Callable[[], Any], *, per: Per = "worker") -> Any:  # noqa: N802 - it stands for a value, as a class would
    """Let a factory give the value of a parameter whose default this is.

    For example `def render(page: int, db: Pool = Use(open_pool))`. The factory returns the value, or is a generator or a context manager
    that gives it and cleans up behind it. It is called once for each worker, when the first job needs it, or with `per="job"` for each job.
    Such a parameter is no argument of the job.
    """
    if per not in ("worker", "job"):
        raise ValueError(f"per must be one of 'worker', 'job', not {per!r}")
    if not callable(factory):
        raise TypeError(f"Use() takes a function that gives the value, not {type(factory).__name__}")
    return Resource(factory, per)


class Resources:
    """The resources of one worker, or of one of its processes; made when they are first needed."""

    def __init__(
        self, around: Sequence[Around] = (), overrides: Mapping[Callable[[], Any], Any] | None = None, *, keeps_async: bool = True
    ) -> None:
        self._around = around
        self._overrides = overrides or {}
        self._keeps_async = keeps_async
        # Guards what is below; a factory is called while it is held, so that each is called once.
        self._lock = threading.RLock()
        self._stack = ExitStack()
        self._made: dict[Resource, Any] = {}
        self._has_begun = False
        # Of tasks: one event loop runs them all.
        self._async_lock: asyncio.Lock | None = None
        self._async_stack = AsyncExitStack()

    @property
    def has_around(self) -> bool:
        """Whether something is done around all jobs of the worker."""
        return bool(self._around)

    def enter(self, stack: ExitStack, uses: Mapping[str, Resource]) -> dict[str, Any]:
        """What the parameters are given, in this thread; what is for this job alone ends with the stack."""
        self._begin()
        return {name: self._sync(stack, use) for name, use in uses.items()}

    def _begin(self) -> None:
        with self._lock:
            if not self._has_begun:
                self._has_begun = True
                for manager in self._around:
                    self._stack.enter_context(_sync_manager(manager(), manager))

    def _sync(self, stack: ExitStack, use: Resource) -> Any:
        if use.factory in self._overrides:
            return self._overrides[use.factory]
        if use.per == "job":
            return stack.enter_context(_sync_manager(_entered(use.factory), use.factory))
        with self._lock:
            if use not in self._made:
                self._made[use] = self._stack.enter_context(_sync_manager(_entered(use.factory), use.factory))
            return self._made[use]

    async def enter_async(self, stack: AsyncExitStack, uses: Mapping[str, Resource]) -> dict[str, Any]:
        """What the parameters are given, in this task."""
        if self._async_lock is None:
            self._async_lock = asyncio.Lock()
        lasting = self._async_stack if self._keeps_async else stack
        async with self._async_lock:
            if not self._has_begun:
                self._has_begun = self._keeps_async
                for manager in self._around:
                    await _enter(lasting, manager())
            return {name: await self._async(stack, lasting, use) for name, use in uses.items()}

    async def _async(self, stack: AsyncExitStack, lasting: AsyncExitStack, use: Resource) -> Any:
        if use.factory in self._overrides:
            return self._overrides[use.factory]
        if use.per == "job" or lasting is stack:
            return await _enter(stack, _entered(use.factory))
        if use not in self._made:
            self._made[use] = await _enter(lasting, _entered(use.factory))
        return self._made[use]

    def close(self) -> None:
        """End those that threads have used."""
        with self._lock:
            self._stack.close()

    async def aclose(self) -> None:
        """End those that tasks have used."""
        stack, self._async_stack = self._async_stack, AsyncExitStack()
        await stack.aclose()


def _entered(factory: Callable[[], Any]) -> Any:
    """What the factory gives, generators as context managers."""
    if inspect.isgeneratorfunction(factory):
        return contextmanager(factory)()
    if inspect.isasyncgenfunction(factory):
        return asynccontextmanager(factory)()
    return factory()


def _sync_manager(made: Any, factory: Callable[..., Any]) -> AbstractContextManager[Any]:
    if isinstance(made, AbstractContextManager):
        return made
    if isinstance(made, AbstractAsyncContextManager) or inspect.isawaitable(made):
        if inspect.iscoroutine(made):
            made.close()
        name = getattr(factory, "__qualname__", repr(factory))
        raise TypeError(f"{name} is async, and a function that runs in a thread or process cannot wait for it: make either function sync")
    return _Given(made)


async def _enter(stack: AsyncExitStack, made: Any) -> Any:
    if isinstance(made, AbstractAsyncContextManager):
        return await stack.enter_async_context(made)
    if isinstance(made, AbstractContextManager):
        return stack.enter_context(made)
    return await made if inspect.isawaitable(made) else made


class _Given(AbstractContextManager[Any]):
    """A value that needs no cleaning up."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __enter__(self) -> Any:
        return self._value

    def __exit__(self, *_: object) -> None:
        pass


def enter_around(stack: ExitStack, around: Sequence[Around], job: Any) -> None:
    """Begin what is done around a job, in this thread."""
    for manager in around:
        stack.enter_context(_sync_manager(manager(job), manager))


async def enter_around_async(stack: AsyncExitStack, around: Sequence[Around], job: Any) -> None:
    """Begin what is done around a job, in this task."""
    for manager in around:
        await _enter(stack, manager(job))
