"""Connections to Redis, for threads: each command takes one that is idle, or a new one."""

import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import redis
import redis.exceptions as theirs
from msgspec import msgpack

from holdfast.clock import Clock
from holdfast.errors import Closed
from holdfast.stores.redis._sync import asking
from holdfast.stores.redis._sync.asking import Wire
from holdfast.stores.redis.address import Address
from holdfast.stores.redis.failures import translate
from holdfast.stores.redis.requests import Asked, Words
from holdfast.stores.redis.scripts import script

SHORTEST_S = 0.001
"""A socket that has no time left; none at all would mean that it never waits."""
NOTHING = msgpack.encode({})


def make_connection(address: Address, **more: Any) -> Wire:
    """A connection that is opened when it is first used."""
    options = {**address.options, **more}
    made_by: Callable[..., Wire] = options.pop("connection_class", redis.Connection)
    try:
        return made_by(**options)
    except TypeError as error:
        raise ValueError(f"invalid option in a Redis URL: {error}") from None


class Connections:
    """The idle connections of one store."""

    def __init__(self, address: Address, clock: Clock | None) -> None:
        self._address = address
        self._clock = clock
        # Guards _idle and _is_closed.
        self._lock = threading.Lock()
        self._idle: list[Wire] = []
        self._is_closed = False
        # Connections to a server that was asked whether it was started anew.
        self._known: weakref.WeakSet[Wire] = weakref.WeakSet()
        self._pid = os.getpid()

    def send(self, name: str, arguments: Words, timeout_s: float | None = None) -> Any:
        """Run a script; its reply. Raises `Lost` where another try may help; with `timeout_s` after so long at the latest."""
        return self._with_one(lambda connection: self._run(connection, Asked(name, arguments)), timeout_s)

    def ask(self, *commands: Words) -> list[Any]:
        """Send plain commands together; their replies, of which each may be an error."""
        replies: list[Any] = self._with_one(lambda connection: asking.ask(connection, *commands))
        return replies

    def _run(self, connection: Wire, asked: Asked) -> Any:
        if connection not in self._known:
            asking.ask(connection, started(self._address, self._clock))
            self._known.add(connection)
        asking.run(connection, [asked])
        if isinstance(asked.reply, Exception):
            raise asked.reply
        return asked.reply

    def _with_one(self, use: Callable[[Wire], Any], timeout_s: float | None = None) -> Any:
        end = None if timeout_s is None else time.monotonic() + timeout_s
        connection = self._take()
        was_sent = connection is not None
        try:
            if connection is None:
                connection = make_connection(self._address, **_limits(timeout_s))
                connection.connect()
                was_sent = True
            if end is not None:
                socket_of(connection).settimeout(max(end - time.monotonic(), SHORTEST_S))
            reply = use(connection)
        except BaseException as error:
            if connection is not None:
                connection.disconnect()
            if isinstance(error, theirs.RedisError | OSError):
                raise translate(error, self._address.shown, was_sent=was_sent) from None
            raise
        self._put_back(connection)
        return reply

    def _take(self) -> Wire | None:
        with self._lock:
            if self._is_closed:
                raise Closed(f"{self._address.shown} was closed: open the store again")
            return self._idle.pop() if self._idle else None

    def _put_back(self, connection: Wire) -> None:
        with self._lock:
            if not self._is_closed and self._pid == os.getpid():
                self._idle.append(connection)
                return
        connection.disconnect()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.disconnect()

    def begin_in_child(self) -> None:
        """Forget the parent's connections, in a forked child, without closing what is still in use there."""
        self._lock = threading.Lock()
        self._idle = []
        self._pid = os.getpid()


def socket_of(connection: Wire) -> socket.socket:
    """The socket of a connection that is open: the library has no way to wake a reader, or to change how long it waits."""
    found: socket.socket = connection._sock  # type: ignore[attr-defined] # noqa: SLF001 - see above
    return found


def _limits(timeout_s: float | None) -> dict[str, float]:
    """How long it may take to connect, and then to be greeted."""
    return {} if timeout_s is None else {"socket_connect_timeout": timeout_s / 2, "socket_timeout": timeout_s / 2}


def started(address: Address, clock: Clock | None) -> Words:
    """What to ask a server before anything else: see started.lua. A user without the right gets no answer."""
    given = () if clock is None else (str(clock.now_us()), str(clock.wall_offset_us()))
    return ("EVAL", script("Started").text, "1", address.prefix, NOTHING, "", *given)
