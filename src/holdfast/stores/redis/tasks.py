"""The Redis store for tasks: the tasks of one event loop share connections and pipeline their requests."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import redis.asyncio
import redis.exceptions as theirs

from holdfast.clock import Clock
from holdfast.commands import Command
from holdfast.commands.sizes import is_large, may_bring
from holdfast.stores._async.networked import execute
from holdfast.stores.async_face import AsyncFace
from holdfast.stores.per_loop import PerLoop
from holdfast.stores.redis._async import asking
from holdfast.stores.redis._async.asking import AsyncWire
from holdfast.stores.redis.address import Address
from holdfast.stores.redis.connections import started
from holdfast.stores.redis.failures import translate
from holdfast.stores.redis.requests import Asked, Words
from holdfast.stores.retrying import Lost
from holdfast.stores.waiting.waiters import Mark

if TYPE_CHECKING:
    from holdfast.stores.redis.store import RedisStore

R = TypeVar("R")

APART_BYTES: Final = 4 * 2**20
"""A reply that may be longer than this has a connection of its own, so that no small one arrives behind it."""


class RedisTasks(AsyncFace["RedisStore"]):
    """The async face of a Redis store."""

    def __init__(self, store: "RedisStore", address: Address) -> None:
        super().__init__(store)
        self.pipes: PerLoop[Pipes] = PerLoop(partial(Pipes, address, store.clock), Pipes.close, Pipes.abandon)

    async def execute(self, command: Command[R]) -> R:
        is_apart = is_large(command, self.limits) or may_bring(command, self.limits) > APART_BYTES
        return await execute(self.store, self._send_apart if is_apart else self._send, command)

    def _send(self, name: str, arguments: Words) -> "asyncio.Future[Any]":
        return self.pipes.get().small.run(name, arguments)

    def _send_apart(self, name: str, arguments: Words) -> "asyncio.Future[Any]":
        return self.pipes.get().large.run(name, arguments)

    async def wait(self, mark: Mark, timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        await self.waiters.wait_async(mark, timeout_s, due_in_s, poll_s)

    async def aclose(self) -> None:
        await super().aclose()
        await self.pipes.aclose()


class _Asked(Asked):
    """A script that is to be run, and the future of its reply."""

    __slots__ = ("future", "where")

    def __init__(self, name: str, arguments: Words, where: str) -> None:
        super().__init__(name, arguments)
        self.where = where
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answer(self, reply: Any) -> None:
        if isinstance(reply, Exception):
            self.fail(translate(reply, self.where, was_sent=True))
        elif not self.future.done():
            self.future.set_result(reply)

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Pipes:
    """The connections of one event loop: one for small commands, and one for large ones and long answers, which would delay the others."""

    def __init__(self, address: Address, clock: Clock | None) -> None:
        self.small: Pipe = Pipe(address, clock)
        self.large: Pipe = Pipe(address, clock)

    async def close(self) -> None:
        await self.small.close()
        await self.large.close()

    def abandon(self) -> None:
        """Do nothing: the library cannot close a connection whose loop is closed. Forgetting it does."""


class Pipe:
    """One connection, opened when it is first used. Redis does one thing at a time, so tasks lose nothing by sharing it.

    While the replies to what was sent are on their way, what is asked gathers, and goes out as one.
    """

    def __init__(self, address: Address, clock: Clock | None) -> None:
        self._address = address
        self._clock = clock
        self._connection = _make_connection(address)
        self._gathered: list[_Asked] = []
        self._worker: asyncio.Task[None] | None = None

    def run(self, name: str, arguments: Words) -> "asyncio.Future[Any]":
        """Run a script, soon; the future of its reply."""
        asked = _Asked(name, arguments, self._address.shown)
        self._gathered.append(asked)
        if self._worker is None or self._worker.done():  # One that was cancelled before it began said nothing.
            self._worker = asyncio.get_running_loop().create_task(self._work())
        return asked.future

    async def close(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        self._fail(self._gathered)
        with suppress(theirs.RedisError):
            await self._connection.disconnect()

    async def _work(self) -> None:
        """Send and read until nothing is asked any more."""
        batch: list[_Asked] = []
        try:
            while self._gathered:
                batch, self._gathered = [one for one in self._gathered if not one.future.done()], []
                await self._exchange(batch)
        except BaseException:
            # The loop ends, or the store was closed: nobody may be left waiting.
            self._fail([*batch, *self._gathered])
            raise
        finally:
            self._worker = None

    def _fail(self, asked: list[_Asked]) -> None:
        """Let those who asked try again: they find another connection, or that the store was closed."""
        for one in asked:
            one.fail(Lost(f"{self._address.shown} was closed during a call", maybe_applied=True))

    async def _exchange(self, batch: list[_Asked]) -> None:
        """Send a batch and return all of it."""
        was_sent = False
        try:
            await self._connect()
            was_sent = True
            await asking.run(self._connection, batch)
        except (theirs.RedisError, OSError) as error:
            await self._connection.disconnect(nowait=True)
            for one in batch:
                one.fail(translate(error, self._address.shown, was_sent=was_sent))

    async def _connect(self) -> None:
        if self._connection.is_connected:
            return
        await self._connection.connect()
        await asking.ask(self._connection, started(self._address, self._clock))


class _Wire(AsyncWire, Protocol):
    """What we use besides of a connection that tasks share."""

    @property
    def is_connected(self) -> bool: ...

    async def disconnect(self, *, nowait: bool = False) -> None: ...


def _make_connection(address: Address) -> _Wire:
    kinds: dict[str, Callable[..., Any]] = {
        "Connection": redis.asyncio.Connection,
        "SSLConnection": redis.asyncio.SSLConnection,
        "UnixDomainSocketConnection": redis.asyncio.UnixDomainSocketConnection,
    }
    options = dict(address.options)
    kind = options.pop("connection_class", None)
    connection: _Wire = kinds["Connection" if kind is None else kind.__name__](**options)
    return connection
