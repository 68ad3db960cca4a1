"""Receives hints from the server: one long request for all waiters of this process.

The server answers it when one of its topics was hinted, and says up to which mark it has reported each; the next request goes on from
there, so nothing between two of them is lost. A topic without a mark is answered at once, and everyone who waits on it asks again.
"""

import logging
import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Final, Protocol

from msgspec import json
from urllib3.connection import HTTPConnection

from holdfast.backoff import Backoff
from holdfast.commands.hints import ALL
from holdfast.stores.http.address import Address
from holdfast.stores.http.connections import one_connection
from holdfast.stores.http.protocol import POLL_S, WAIT_PATH, Asked, Heard, Waited, WaitFor
from holdfast.stores.http.replies import Reply, body_of

READ_S = POLL_S + 15.0
TOPICS_MAX = 10_000
"""How many topics one request waits on; waiters on others must ask again by themselves."""

BACKOFF = Backoff(first_s=0.05, most_s=2.0)

NOTHING: Final = Waited([])

_log = logging.getLogger(__name__)
_encode = json.Encoder().encode
_decode = json.Decoder(Waited).decode


class OnHint(Protocol):
    """Gives a hint to those who wait here."""

    def __call__(self, topic: str, count: int) -> None: ...


class Listener:
    """Listens on the topics that have waiters, in a thread that starts with the first of them."""

    def __init__(self, address: Address, on_hint: OnHint) -> None:
        self._address = address
        self._on_hint = on_hint
        # Guards what is below.
        self._changed = threading.Condition()
        self._waiting: dict[str, int] = {}
        # Up to where each topic was heard, of those that are or were lately waited on: the youngest last.
        self._marks: dict[str, str | None] = {}
        # Topics that we may not wait on, by what our token allows: whoever waits on one asks again by themselves.
        self._refused: set[str] = set()
        # Done once the server has heard of the topic; only of topics that have no mark yet.
        self._announced: dict[str, Future[None]] = {}
        # What the request under way was made for.
        self._wanted: frozenset[str] = frozenset()
        self._lately: frozenset[str] = frozenset()
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_failing = False
        # Only the thread's.
        self._connection: HTTPConnection | None = None

    @contextmanager
    def on(self, topic: str) -> Iterator[Future[None] | None]:
        """Listen on the topic while the block waits.

        Gives None where the server reports it already, or cannot; else what is done once it does: until then there were no hints.
        """
        if topic in self._refused:
            yield None
            return
        with self._changed:
            self._waiting[topic] = self._waiting.get(topic, 0) + 1
            if topic not in self._wanted:
                self._ask_again()
            announced = self._announcement(topic)
        try:
            yield announced
        finally:
            with self._changed:
                self._waiting[topic] -= 1
                if not self._waiting[topic]:
                    del self._waiting[topic]

    def _announcement(self, topic: str) -> Future[None] | None:
        if self._marks.get(topic) is not None or self._is_failing or len(self._waiting) > TOPICS_MAX:
            return None
        return self._announced.setdefault(topic, Future())

    def hears_of(self, topic: str) -> bool:
        """Whether the server reports what happens there; while it does not, only asking again finds out."""
        return not self._is_failing and self._marks.get(topic) is not None

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closed = True
            self._ask_again()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._let_all_ask()

    def _ask_again(self) -> None:
        """Let the thread ask for all that is wanted now, cutting short what it asked before."""
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._listen, name="holdfast-listener", daemon=True)
            self._thread.start()
        self._changed.notify_all()
        if self._socket is not None:
            # The thread sleeps in a read: this is what wakes it.
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket = None

    def _listen(self) -> None:
        failed = 0
        while (wanted := self._next()) is not None:
            try:
                waited = self._ask(wanted)
            except Exception as error:  # noqa: BLE001 - whatever it is, a thread that ended would be deaf for ever
                failed = 0 if self._is_outdated() else failed + 1
                self._rest(failed, error)
            else:
                failed = 0
                self._refuse(waited.refused)
                self._tell(waited.topics)
        self._hang_up()

    def _next(self) -> list[Asked] | None:
        """What to ask for next, once there are waiters; None at the end."""
        with self._changed:
            self._wanted = frozenset()
            while self._waiting.keys() <= self._refused and not self._is_closed:
                self._changed.wait()
            if self._is_closed:
                return None
            for topic in (*self._lately, *self._waiting):
                self._marks[topic] = self._marks.pop(topic, None)
            while len(self._marks) > TOPICS_MAX:
                del self._marks[next(iter(self._marks))]
            wanted = [Asked(topic, mark) for topic, mark in self._marks.items() if topic in self._waiting or topic in self._lately]
            wanted = [each for each in wanted if each.topic not in self._refused]
            self._lately = frozenset()
            self._wanted = frozenset(self._waiting)
            return wanted

    def _ask(self, wanted: list[Asked]) -> Waited:
        """Ask the server, and sleep until it answers; nothing, if there are waiters on another topic by now."""
        is_under_way = False
        try:
            if self._connection is None:
                self._connection = one_connection(self._address, READ_S)
                self._connection.connect()
            with self._changed:
                self._socket = self._connection.sock
                is_under_way = True
                if self._is_outdated():
                    return NOTHING
            path, body = self._address.path + WAIT_PATH, _encode(WaitFor(wanted, POLL_S))
            self._connection.request("POST", path, body, self._address.headers())
            reply = self._connection.getresponse()
            waited = _decode(body_of(Reply(reply.status, reply.headers, reply.data)))
        except BaseException as error:
            self._hang_up()
            with self._changed:
                was_cut = is_under_way and self._socket is None
            if was_cut and isinstance(error, Exception):
                return NOTHING  # It ended because it was cut short, whoever waits by now: no fault of the server's.
            raise
        finally:
            with self._changed:
                was_cut, self._socket = self._socket is None, None
            if was_cut:
                # Perhaps only after the answer had come: the next request needs a connection of its own all the same.
                self._hang_up()
        return waited

    def _refuse(self, refused: list[str]) -> None:
        """Wait on these no more, and let those who do ask by themselves."""
        if not refused:
            return
        with self._changed:
            if len(self._refused) > TOPICS_MAX:
                self._refused.clear()
            self._refused.update(refused)
            announced = [self._announced.pop(topic, None) for topic in refused]
        _log.info("%s sends no wake-ups for %s, which this token may not wait on: polling instead", self._address.url, refused)
        _tell_all(announced)

    def _tell(self, heard: list[Heard]) -> None:
        with self._changed:
            self._marks.update((each.topic, each.mark) for each in heard)
            # Whoever is woken asks, and mostly waits again: until then the topic stays asked for, so that nothing has to be cut short.
            self._lately = frozenset(each.topic for each in heard if each.topic in self._waiting)
            self._is_failing = False
            announced = [self._announced.pop(each.topic, None) for each in heard]
        for each in heard:
            self._on_hint(each.topic, ALL if each.count is None else each.count)
        _tell_all(announced)

    def _rest(self, failed: int, error: Exception) -> None:
        if not failed:
            return
        if failed == 1:
            _log.warning("no wake-ups from %s for now, retrying: %s", self._address.url, error)
        self._let_all_ask()
        with self._changed:
            self._changed.wait(BACKOFF.delay_s(failed))

    def _let_all_ask(self) -> None:
        """Keep no one waiting for the first answer: for now there will be none, or not any more."""
        with self._changed:
            self._is_failing = True
            announced, self._announced = self._announced, {}
        _tell_all(announced.values())

    def _is_outdated(self) -> bool:
        """Whether there are waiters on a topic that the request under way was not made for, or none at all."""
        return self._is_closed or not self._waiting.keys() <= self._wanted

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _tell_all(announced: Iterable[Future[None] | None]) -> None:
    for each in announced:
        if each is not None:
            each.set_result(None)
