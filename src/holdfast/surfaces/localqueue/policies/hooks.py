"""Callbacks after a put: first the notification, then the dispatcher. Neither leases nor acknowledges anything."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from holdfast.process.event_loops import running_loop
from holdfast.surfaces.localqueue.messages import QueueMessage
from holdfast.surfaces.localqueue.policies.base import Described, Policy

__all__ = [
    "NO_DISPATCHER",
    "NO_NOTIFICATION",
    "AsyncioNotification",
    "CallbackDispatcher",
    "CallbackNotification",
    "DispatchPolicy",
    "InProcessNotification",
    "NoDispatcher",
    "NoNotification",
    "NotificationPolicy",
    "WebSocketNotification",
]

Handler = Callable[[QueueMessage], object]

NOTIFIES = ("notifies", "notifies_on_put", "listener_count")
"""What a notification policy shows."""


class DispatchPolicy(Policy, Protocol):
    """What handles messages in this process as they are put."""

    @property
    def dispatches(self) -> bool: ...
    @property
    def dispatches_on_put(self) -> bool: ...
    @property
    def handler_count(self) -> int: ...
    def dispatch(self, message: QueueMessage) -> None:
        """Handle a message that was put."""


@dataclass(frozen=True)
class NoDispatcher(Described):
    """Nothing: workers pull."""

    dispatches: bool = False
    dispatches_on_put: bool = False
    handler_count: int = 0

    def dispatch(self, message: QueueMessage) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class CallbackDispatcher(Described, kind={"type": "callback"}, shown=("dispatches", "dispatches_on_put", "handler_count")):
    """These handlers, one after the other."""

    handlers: tuple[Handler, ...]
    dispatches: bool = True
    dispatches_on_put: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "handlers", _several(self.handlers, "handlers"))

    @property
    def handler_count(self) -> int:
        """How many there are."""
        return len(self.handlers)

    def dispatch(self, message: QueueMessage) -> None:
        """Call each of them."""
        for handler in self.handlers:
            handler(message)


class NotificationPolicy(Policy, Protocol):
    """Who is told in this process that a message was put."""

    @property
    def notifies(self) -> bool: ...
    @property
    def notifies_on_put(self) -> bool: ...
    @property
    def listener_count(self) -> int: ...
    def notify(self, message: QueueMessage) -> None:
        """Report a message that was put."""


@dataclass(frozen=True)
class NoNotification(Described):
    """No one: waiters in a `get`, in any process, are woken by the store."""

    notifies: bool = False
    notifies_on_put: bool = False
    listener_count: int = 0

    def notify(self, message: QueueMessage) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class CallbackNotification(Described, kind={"type": "callback", "scope": "in-process"}, shown=NOTIFIES):
    """These listeners, one after the other."""

    listeners: Handler | tuple[Handler, ...]
    notifies: bool = True
    notifies_on_put: bool = True

    def __post_init__(self) -> None:
        listeners = (self.listeners,) if callable(self.listeners) else self.listeners
        object.__setattr__(self, "listeners", _several(listeners, "listeners"))

    @property
    def listener_count(self) -> int:
        """How many there are."""
        return len(self._all)

    def notify(self, message: QueueMessage) -> None:
        """Call each of them."""
        for listener in self._all:
            listener(message)

    @property
    def _all(self) -> tuple[Handler, ...]:
        return self.listeners if isinstance(self.listeners, tuple) else (self.listeners,)


@dataclass(frozen=True)
class InProcessNotification(Described, kind={"type": "thread-event", "scope": "in-process"}, shown=NOTIFIES):
    """An event that threads of this process can wait for."""

    event: threading.Event = field(default_factory=threading.Event)
    notifies: bool = True
    notifies_on_put: bool = True
    listener_count: int = 1

    def notify(self, message: QueueMessage) -> None:
        """Set the event."""
        del message
        self.event.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, and return whether it was."""
        return self.event.wait(timeout)

    def clear(self) -> None:
        """Make it unset."""
        self.event.clear()


@dataclass(frozen=True)
class AsyncioNotification(Described, kind={"type": "asyncio-event", "scope": "in-process"}, shown=NOTIFIES):
    """An event that tasks of one loop can wait for, set from any thread."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    loop: asyncio.AbstractEventLoop | None = None
    notifies: bool = True
    notifies_on_put: bool = True
    listener_count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "loop", self.loop or running_loop())

    def notify(self, message: QueueMessage) -> None:
        """Set the event, in its own loop."""
        del message
        if self.loop is None or self.loop is running_loop():
            self.event.set()
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.event.set)

    async def wait_async(self, timeout: float | None = None) -> bool:
        """Wait until it is set, and return whether it was."""
        object.__setattr__(self, "loop", running_loop())
        try:
            return await asyncio.wait_for(self.event.wait(), timeout)
        except TimeoutError:
            return False

    def clear(self) -> None:
        """Make it unset."""
        self.event.clear()


def message_as_dict(message: QueueMessage) -> dict[str, Any]:
    """The message as plain data; the token of a claim is its holder's alone."""
    return {name: value for name, value in asdict(message).items() if name != "token"}


@dataclass(frozen=True)
class WebSocketNotification(Described, kind={"type": "websocket", "scope": "network"}, shown=NOTIFIES):
    """WebSocket-like connections, which are sent each message as `serializer` makes it; a send that fails is its loop's to report."""

    connections: Any
    serializer: Callable[[QueueMessage], object] = message_as_dict
    loop: asyncio.AbstractEventLoop | None = None
    notifies: bool = True
    notifies_on_put: bool = True
    # A loop keeps no task alive, so these are kept here until they are done.
    _sends: set[Any] = field(default_factory=set, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_one = any(callable(getattr(self.connections, name, None)) for name in ("send", "send_text", "send_json"))
        object.__setattr__(self, "connections", _several((self.connections,) if is_one else self.connections, "connections"))
        object.__setattr__(self, "loop", self.loop or running_loop())

    @property
    def listener_count(self) -> int:
        """How many connections there are."""
        return len(self.connections)

    def notify(self, message: QueueMessage) -> None:
        """Send to each of them, without waiting for it."""
        loop = self.loop or running_loop()
        if loop is None:
            raise RuntimeError("WebSocketNotification needs a running event loop, or one given as loop=")
        payload = self.serializer(message)
        for connection in self.connections:
            if loop is running_loop():
                send: Any = loop.create_task(_send(connection, payload))
            else:
                send = asyncio.run_coroutine_threadsafe(_send(connection, payload), loop)
            self._sends.add(send)
            send.add_done_callback(self._sends.discard)


async def _send(connection: Any, payload: object) -> None:
    if hasattr(connection, "send_json"):
        await connection.send_json(payload)
    elif hasattr(connection, "send_text") and isinstance(payload, str):
        await connection.send_text(payload)
    else:
        await connection.send(payload)


def _several(things: Any, what: str) -> tuple[Any, ...]:
    several = tuple(things)
    if not several:
        raise ValueError(f"{what} cannot be empty: give at least one")
    return several


NO_DISPATCHER = NoDispatcher()
NO_NOTIFICATION = NoNotification()
