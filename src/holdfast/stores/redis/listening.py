"""Receives hints of all processes: one connection in one thread, subscribed to the topics with waiters.

A script publishes only where there are subscribers. A topic is subscribed to when the first mark is taken on it, and given up some
time after the last. When the connection was lost, so were hints: everyone is told to look again.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import redis.exceptions as theirs

from holdfast.backoff import Backoff
from holdfast.commands.hints import ALL
from holdfast.stores.redis._sync.asking import Wire
from holdfast.stores.redis.address import Address
from holdfast.stores.redis.connections import make_connection, socket_of
from holdfast.stores.waiting.hints import count_of

_log = logging.getLogger("holdfast")

TICK_S = 5.0
"""How often the listener looks for topics without waiters, and whether its connection lives."""

KEPT_S = 30.0
"""How long a topic stays subscribed after the last mark was taken on it."""


class Hears(Protocol):
    """What the listener tells: the waiters of a store."""

    def hint(self, topic: str, count: int = 1) -> None: ...

    def topics(self) -> list[str]: ...


class Listener:
    """Hands the hints on one store's channels to its waiters. Nothing is opened before the first mark is taken."""

    def __init__(self, address: Address, waiters: Hears, now: Callable[[], float] = time.monotonic) -> None:
        self._address = address
        self._waiters = waiters
        self._now = now
        self._channel = f"{address.prefix}:wake:"
        self._backoff = Backoff(first_s=0.05, most_s=2.0)
        self._is_closed = False
        self.begin()

    def begin(self) -> None:
        """Start without a thread, in a forked child again: the parent's stayed behind."""
        # Guards all below, and what is sent on the connection.
        self._lock = threading.Lock()
        self._wanted: dict[str, float] = {}
        """Topics, and when a mark was last taken on each."""
        self._connection: Wire | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def want(self, topic: str) -> None:
        """Hear the hints on a topic from now on, or soon: once they are heard, earlier marks are made stale."""
        with self._lock:
            is_new = topic not in self._wanted
            self._wanted[topic] = self._now()
            if self._is_closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, name="holdfast-redis-listener", daemon=True)
                self._thread.start()
            elif is_new and self._connection is not None:
                self._send(self._connection, "SUBSCRIBE", [topic])

    def close(self) -> None:
        """End the thread and its connection."""
        with self._lock:
            self._is_closed = True
            thread, self._thread = self._thread, None
            connection = self._connection
        self._stop.set()
        if connection is not None:
            _cut(connection)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _listen(self) -> None:
        failed = 0
        while not self._stop.is_set():
            connection = make_connection(self._address, socket_timeout=TICK_S)
            try:
                self._open(connection)
                failed = 0
                self._read(connection)
            except Exception as error:  # noqa: BLE001 - whatever it is, a thread that ended would be deaf for ever
                failed += 1
                if failed == 1 and not self._stop.is_set():
                    _log.warning("the connection for wake-ups of %s was lost, reconnecting: %s", self._address.shown, error)
            finally:
                with self._lock:
                    self._connection = None
                connection.disconnect()
            self._stop.wait(self._backoff.delay_s(failed))

    def _open(self, connection: Wire) -> None:
        connection.connect()
        with self._lock:
            if self._is_closed:
                return
            self._connection = connection
            self._send(connection, "SUBSCRIBE", list(self._wanted))

    def _read(self, connection: Wire) -> None:
        """Hear hints until the connection or the store ends."""
        is_asked = False
        looked_at = self._now()
        while not self._stop.is_set():
            try:
                reply = connection.read_response(disconnect_on_error=False)
                is_asked = False
                self._told(reply)
            except theirs.TimeoutError:
                if is_asked:
                    raise
                is_asked = True
                with self._lock:
                    connection.send_command("PING")
            if self._now() - looked_at > TICK_S:
                looked_at = self._now()
                self._give_up(connection)

    def _told(self, reply: Any) -> None:
        if not isinstance(reply, list):
            return  # The answer to a PING while there is no topic: only among topics is it a message.
        kind, channel, *content = reply
        topic = channel.decode().removeprefix(self._channel)
        if kind == b"message":
            # Whoever may connect may publish: what is no hint of ours is nothing to us.
            if (count := count_of(content[0])) is not None:
                self._waiters.hint(topic, count)
        elif kind == b"subscribe":
            # Whoever took a mark before this moment may have missed something.
            self._waiters.hint(topic, ALL)

    def _give_up(self, connection: Wire) -> None:
        """Unsubscribe from topics without waiters."""
        with self._lock:
            busy = set(self._waiters.topics())
            old = [topic for topic, at in self._wanted.items() if at < self._now() - KEPT_S and topic not in busy]
            for topic in old:
                del self._wanted[topic]
            self._send(connection, "UNSUBSCRIBE", old)

    def _send(self, connection: Wire, command: str, topics: list[str]) -> None:
        if not topics:
            return
        try:
            connection.send_command(command, *[self._channel + topic for topic in topics])
        except (theirs.RedisError, OSError):
            # The thread that reads notices, and subscribes to all that is wanted on another connection.
            _cut(connection)


def _cut(connection: Wire) -> None:
    """End a connection that another thread reads from: it wakes up."""
    with suppress(OSError, AttributeError):  # It has no socket before it is open, and none when it is closed.
        socket_of(connection).shutdown(socket.SHUT_RDWR)
