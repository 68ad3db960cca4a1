"""What is called in this process after a put: first the notification, then the dispatcher. Neither leases nor acknowledges anything."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol

from holdfast.surfaces.localqueue.described import Described
from holdfast.surfaces.localqueue.messages import QueueMessage

Handler = Callable[[QueueMessage], object]


class DispatchPolicy(Protocol):
    """What handles messages in this process as they are put."""

    @property
    def dispatches(self) -> bool: ...
    @property
    def dispatches_on_put(self) -> bool: ...
    @property
    def handler_count(self) -> int: ...
    def dispatch(self, message: QueueMessage) -> None:
        """Handle a message that was put."""
        ...

    def as_dict(self) -> dict[str, object]:
        """The policy as plain data."""
        ...


@dataclass(frozen=True, slots=True)
class NoDispatcher(Described):
    """Nothing: workers pull."""

    dispatches: bool = False
    dispatches_on_put: bool = False
    handler_count: int = 0

    def dispatch(self, message: QueueMessage) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class CallbackDispatcher(Described):
    """These handlers, one after the other."""

    kind: ClassVar[dict[str, object]] = {"type": "callback"}

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

    def as_dict(self) -> dict[str, object]:
        """The values, with the number of handlers."""
        described = {"dispatches": self.dispatches, "dispatches_on_put": self.dispatches_on_put}
        return {**self.kind, **described, "handler_count": self.handler_count}


class NotificationPolicy(Protocol):
    """Who is told in this process that a message was put."""

    @property
    def notifies(self) -> bool: ...
    @property
    def notifies_on_put(self) -> bool: ...
    @property
    def listener_count(self) -> int: ...
    def notify(self, message: QueueMessage) -> None:
        """Tell of a message that was put."""
        ...

    def as_dict(self) -> dict[str, object]:
        """The policy as plain data."""
        ...


@dataclass(frozen=True, slots=True)
class NoNotification(Described):
    """Nobody: whoever waits in a `get`, in any process, is woken by the store."""

    notifies: bool = False
    notifies_on_put: bool = False
    listener_count: int = 0

    def notify(self, message: QueueMessage) -> None:
        """Tell nobody."""


@dataclass(frozen=True, slots=True)
class CallbackNotification(Described):
    """These listeners, one after the other."""

    kind: ClassVar[dict[str, object]] = {"type": "callback", "scope": "in-process"}

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

    def as_dict(self) -> dict[str, object]:
        """The values, with the number of listeners."""
        return {**self.kind, **_told(self)}

    @property
    def _all(self) -> tuple[Handler, ...]:
        return self.listeners if isinstance(self.listeners, tuple) else (self.listeners,)


@dataclass(frozen=True, slots=True)
class InProcessNotification(Described):
    """An event that threads of this process can wait for."""

    kind: ClassVar[dict[str, object]] = {"type": "thread-event", "scope": "in-process"}

    event: threading.Event = field(default_factory=threading.Event)
    notifies: bool = True
    notifies_on_put: bool = True
    listener_count: int = 1

    def notify(self, message: QueueMessage) -> None:
        """Set the event."""
        del message
        self.event.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, and answer whether it was."""
        return self.event.wait(timeout)

    def clear(self) -> None:
        """Make it unset."""
        self.event.clear()

    def as_dict(self) -> dict[str, object]:
        """The values but for the event."""
        return {**self.kind, **_told(self)}


@dataclass(frozen=True, slots=True)
class AsyncioNotification(Described):
    """An event that tasks of one loop can wait for, set from any thread."""

    kind: ClassVar[dict[str, object]] = {"type": "asyncio-event", "scope": "in-process"}

    event: asyncio.Event = field(default_factory=asyncio.Event)
    loop: asyncio.AbstractEventLoop | None = None
    notifies: bool = True
    notifies_on_put: bool = True
    listener_count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "loop", self.loop or _running())

    def notify(self, message: QueueMessage) -> None:
        """Set the event, in its own loop."""
        del message
        if self.loop is None or self.loop is _running():
            self.event.set()
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.event.set)

    async def wait_async(self, timeout: float | None = None) -> bool:
        """Wait until it is set, and answer whether it was."""
        object.__setattr__(self, "loop", _running())
        try:
            return await asyncio.wait_for(self.event.wait(), timeout)
        except TimeoutError:
            return False

    def clear(self) -> None:
        """Make it unset."""
        self.event.clear()

    def as_dict(self) -> dict[str, object]:
        """The values but for event and loop."""
        return {**self.kind, **_told(self)}


def message_as_dict(message: QueueMessage) -> dict[str, Any]:
    """The message as plain data; the token of a claim is its holder's alone."""
    told = asdict(message)
    del told["token"]
    return told


@dataclass(frozen=True, slots=True)
class WebSocketNotification(Described):
    """WebSocket-like connections, which are sent each message as `serializer` makes it; a send that fails is its loop's to report."""

    kind: ClassVar[dict[str, object]] = {"type": "websocket", "scope": "network"}

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
        object.__setattr__(self, "loop", self.loop or _running())

    @property
    def listener_count(self) -> int:
        """How many connections there are."""
        return len(self.connections)

    def notify(self, message: QueueMessage) -> None:
        """Send to each of them, without waiting for it."""
        loop = self.loop or _running()
        if loop is None:
            raise RuntimeError("WebSocketNotification needs a running event loop, or one given as loop=")
        payload = self.serializer(message)
        for connection in self.connections:
            if loop is _running():
                send: Any = loop.create_task(_send(connection, payload))
            else:
                send = asyncio.run_coroutine_threadsafe(_send(connection, payload), loop)
            self._sends.add(send)
            send.add_done_callback(self._sends.discard)

    def as_dict(self) -> dict[str, object]:
        """The values, with the number of connections."""
        return {**self.kind, **_told(self)}


async def _send(connection: Any, payload: object) -> None:
    if hasattr(connection, "send_json"):
        await connection.send_json(payload)
    elif hasattr(connection, "send_text") and isinstance(payload, str):
        await connection.send_text(payload)
    else:
        await connection.send(payload)


def _told(policy: NotificationPolicy) -> dict[str, object]:
    return {name: getattr(policy, name) for name in ("notifies", "notifies_on_put", "listener_count")}


def _several(things: Any, what: str) -> tuple[Any, ...]:
    several = tuple(things)
    if not several:
        raise ValueError(f"{what} cannot be empty: give at least one")
    return several


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


NO_DISPATCHER = NoDispatcher()
NO_NOTIFICATION = NoNotification()
