"""Resources that belong to one event loop, such as connections: one per loop that asks, closed when its loop ends.

`asyncio.run`, uvloop, anyio and pytest-asyncio call `loop.shutdown_asyncgens()` before they close a loop. An asynchronous generator that is
suspended until then closes the resource. The loop itself owns both, so nothing here keeps a loop alive.
"""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

ATTRIBUTE: Final = "_holdfast_resources"
"""Where a loop keeps its resources."""

OTHERS_S: Final = 5.0
"""How long a loop that ends lets other generators use its resources."""


class PerLoop(Generic[T]):
    """Makes a resource for each event loop that asks for one.

    `close` closes one in its own loop. `abandon` gives back what it can of one whose loop was closed without `shutdown_asyncgens()`, in any
    thread. Both are called once at most, and must not refer to the owner of this object: the resource ends when the owner is dropped.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[object]], abandon: Callable[[T], object]) -> None:
        self._make = make
        self._close = close
        self._abandon = abandon
        # No lock: each step on it is one of the interpreter's, so that neither a fork nor a finalizer can find it taken.
        self._resources: dict[int, weakref.ref[_Resource[T]]] = {}
        self._latest: Callable[[], _Resource[T] | None] = _nothing
        self._closing: set[asyncio.Task[None]] = set()

    def get(self) -> T:
        """The resource of the running loop. Once that of a loop that ends was closed, a new one is made, which is not closed."""
        loop = asyncio.get_running_loop()
        latest = self._latest()  # Nearly always there is one event loop, and looking it up costs as much as a future.
        if latest is not None and latest.loop is loop and latest.value is not None:
            return latest.value
        kept = _owned_by(loop).kept
        found: _Kept[T] | None = kept.get(self)
        if found is None or found.resource.value is None:
            self._abandon_closed()
            found = kept[self] = self._keep(loop, is_ending=found is not None)
        self._latest = weakref.ref(found.resource)
        value = found.resource.value
        assert value is not None  # noqa: S101 - made above, or looked at
        return value

    async def aclose(self) -> None:
        """Close the resource of the running loop, if it has one, and wait until it is closed."""
        loop = asyncio.get_running_loop()
        await self._close_own(loop)
        await asyncio.gather(*[task for task in self._closing if task.get_loop() is loop], return_exceptions=True)

    def close(self) -> None:
        """Have every resource closed, without waiting: each loop closes its own, as soon as it runs; one that is closed cannot."""
        for resource in self._alive():
            try:
                resource.loop.call_soon_threadsafe(self._begin_to_close, resource.loop)
            except RuntimeError:
                resource.abandon(self._abandon)

    def __len__(self) -> int:
        """How many loops have one."""
        return len(self._alive())

    def _keep(self, loop: asyncio.AbstractEventLoop, *, is_ending: bool) -> "_Kept[T]":
        resource = _Resource(loop, self._make())
        self._resources[id(resource)] = weakref.ref(resource)
        if is_ending:
            return _Kept(resource, None)
        closed_by = _close_at_end(resource, self._close)
        with suppress(StopIteration):
            closed_by.asend(None).send(None)  # Up to its yield; the loop hears of it here.
        return _Kept(resource, closed_by)

    def _begin_to_close(self, loop: asyncio.AbstractEventLoop) -> None:
        task = loop.create_task(self._close_own(loop))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_own(self, loop: asyncio.AbstractEventLoop) -> None:
        kept: _Kept[T] | None = _owned_by(loop).kept.pop(self, None)
        if kept is None:
            return
        await kept.resource.close(self._close)
        if kept.closed_by is not None:
            with suppress(RuntimeError):  # It runs already: the loop ends at this moment.
                await kept.closed_by.aclose()

    def _abandon_closed(self) -> None:
        for resource in self._alive():
            if resource.loop.is_closed():
                resource.abandon(self._abandon)

    def _alive(self) -> "list[_Resource[T]]":
        known = [(key, reference()) for key, reference in list(self._resources.items())]
        for key, resource in known:
            if resource is None or resource.value is None:
                self._resources.pop(key, None)
        return [resource for _, resource in known if resource is not None and resource.value is not None]


class _Owned:
    """What a loop owns: a resource for each `PerLoop` that is still there, and the tasks that close them as it ends."""

    def __init__(self) -> None:
        self.kept: weakref.WeakKeyDictionary[PerLoop[Any], _Kept[Any]] = weakref.WeakKeyDictionary()
        self.closers: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()


class _Resource(Generic[T]):
    """A resource of one loop; without a value once it was closed."""

    __slots__ = ("__weakref__", "loop", "value")

    def __init__(self, loop: asyncio.AbstractEventLoop, value: T) -> None:
        self.loop = loop
        self.value: T | None = value

    async def close(self, close: Callable[[T], Awaitable[object]]) -> None:
        value, self.value = self.value, None
        if value is not None:
            await close(value)

    def abandon(self, abandon: Callable[[T], object]) -> None:
        value, self.value = self.value, None
        if value is not None:
            abandon(value)


class _Kept(Generic[T]):
    """A resource, and the generator that closes it. The generator does not refer to this: no cycle delays its end."""

    __slots__ = ("closed_by", "resource")

    def __init__(self, resource: _Resource[T], closed_by: AsyncGenerator[None, None] | None) -> None:
        self.resource = resource
        self.closed_by = closed_by


async def _close_at_end(resource: _Resource[T], close: Callable[[T], Awaitable[object]]) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        if resource.value is not None:
            await _let_others_end(resource.loop)
            await resource.close(close)


def _ending_of(generator: AsyncGenerator[None, None]) -> type:
    ending = generator.aclose()
    ending.close()
    return type(ending)


async def _let_others_end(loop: asyncio.AbstractEventLoop) -> None:
    """Let other generators end first: one may hold a claim, and give it back now."""
    closers = _owned_by(loop).closers
    current = asyncio.current_task()
    if current is not None:
        closers.add(current)
    await asyncio.sleep(0)  # All of them are begun together: by now ours have said who they are.
    others = [task for task in asyncio.all_tasks(loop) if isinstance(task.get_coro(), _ENDING) and task not in closers]
    if others:
        await asyncio.wait(others, timeout=OTHERS_S)


def _owned_by(loop: asyncio.AbstractEventLoop) -> _Owned:
    owned: _Owned = vars(loop).setdefault(ATTRIBUTE, _Owned())
    return owned


def _nothing() -> None:
    return None


async def _none() -> AsyncGenerator[None, None]:
    yield


_ENDING: Final = _ending_of(_none())
"""What a task runs that ends a generator: the type of what `aclose()` returns has no name."""
