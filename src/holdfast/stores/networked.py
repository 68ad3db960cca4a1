"""What stores across a wire have alike; `_async.networked` executes their commands."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from holdfast.clock import Clock
from holdfast.codec import Limits
from holdfast.commands import Command
from holdfast.errors import Closed
from holdfast.stores import Executor, StoreDefaults
from holdfast.stores.retrying import ONCE, Patience, Tries, retry
from holdfast.stores.waiting.waiters import Mark, Waiters, waiters_for

R = TypeVar("R")


class NetworkedStore(StoreDefaults):
    """A store across a wire, for threads. `clock` is for a test that owns the server's clock, too."""

    def __init__(self, url: str, limits: Limits, clock: Clock | None) -> None:
        self.url = url
        self.limits = limits
        self.clock = clock
        self.waiters: Waiters = waiters_for(clock)
        self.closing: threading.Event = threading.Event()
        # Between two tries.
        self.pause: Callable[[float], object] = self.closing.wait
        self.pause_async: Callable[[float], Awaitable[object]] = asyncio.sleep

    def refuse_if_closed(self) -> None:
        """Raise `Closed` after `close`."""
        if self.closing.is_set():
            raise Closed("The store was closed; open it again.")

    def mark(self, topic: str) -> Mark:
        return self.waiters.mark(topic)

    def wall_offset_us(self) -> int:
        """Nothing: the server's clock is a wall clock."""
        return 0 if self.clock is None else self.clock.wall_offset_us()


class Requests(Executor, Protocol):
    """A store that sends one request for each command."""

    limits: Limits
    pause: Callable[[float], object]
    pause_async: Callable[[float], Awaitable[object]]

    @property
    def patience(self) -> Patience:
        """How long a command is tried."""
        ...

    def refuse_if_closed(self) -> None:
        """Raise `Closed` after `close`."""
        ...

    def request(self, command: Command[Any]) -> tuple[Any, ...]:
        """What is sent for the command."""
        ...

    def answer(self, command: Command[R], reply: Any) -> R:
        """What the reply answers to the command; raises `Lost` where another try may help."""
        ...


class Connections(Protocol):
    """Sends requests, from any thread."""

    def send(self, name: str, arguments: Any, timeout_s: float | None = None, /) -> Any:
        """Send one, and return the reply; raises `Lost` if there is none within `timeout_s`."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


class ConnectedRenewer:
    """Renews through connections of its own; see `Renewer`."""

    def __init__(self, store: Requests, connections: Connections) -> None:
        self._store = store
        self._connections = connections

    def execute(self, command: Command[R], timeout_s: float) -> R:
        name, arguments = self._store.request(command)
        return retry(lambda: self._store.answer(command, self._connections.send(name, arguments, timeout_s)), Tries(ONCE))

    def close(self) -> None:
        self._connections.close()
