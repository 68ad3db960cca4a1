"""Wake-up hints between the processes that share one file.

A process that waits binds a datagram socket in a folder beside the file; one that has committed sends its hints to every socket there.
The folder, its sockets and so the hints are open to all who can write the database. A hint may be lost (a process was stopped, a socket
could not be made), so a waiter also polls, slowly.
"""

import logging
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from msgspec import DecodeError, msgpack

from holdfast.errors import Closed
from holdfast.process.forks import call_in_child
from holdfast.stores.files.socketfolder import SocketFolder, folder_for, make_folder, opened, remove_folder
from holdfast.stores.waiting.waiters import EVERYTHING

Hint = tuple[str, int]
"""A topic, and how many waiters may find something there."""

OnHint = Callable[[str, int], None]

MOVES = 100
"""How often the folder may vanish before we believe that it cannot be made."""

DATAGRAM_BYTES = 2048
RECEIVED_BYTES = 64 * DATAGRAM_BYTES

RACY_NS = 2_000_000_000
"""A folder changed so shortly before it was read may change again without a new time stamp (the coarsest file systems count by two
seconds), so such a listing is not trusted twice."""

_encoder = msgpack.Encoder()
_decoder = msgpack.Decoder(list[Hint])
logger: logging.Logger = logging.getLogger(__name__)


class Wakeups:
    """This process's end of the wake-ups on one file. `on_hint` is called in the listener's thread; a forked child starts again.

    Without waiters a post costs a look for the folder; a thread runs only while there are some.
    """

    def __init__(self, database: str | os.PathLike[str], on_hint: OnHint) -> None:
        self._database = database
        self._on_hint = on_hint
        self._folder = folder_for(database)
        self._closed = False
        self._begin()
        _everyone.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()  # guards what follows; nothing that blocks is called under it
        self._listener: _Listener | None = None
        self._deaf = False
        self._peers: dict[str, socket.socket] = {}
        self._peers_at_ns = -1  # the folder's time stamp that the peers belong to
        self._nobody_at_ns = -1  # ... if there are none: read without the lock

    def listen(self) -> None:
        """Be told of commits from here on. Take a mark, or look into the store, after it returned: then nothing is missed.

        Idempotent. If no socket can be made, this is logged and the slow poll is used.
        """
        if self._listener or self._deaf:
            return
        with self._lock:
            if self._closed:
                raise Closed(f"The wake-ups of {self._database} were closed: open the store again.")
            if self._listener:
                return
            try:
                self._listener = _Listener(self._folder, self._database, self._on_hint)
            except (OSError, RuntimeError) as error:  # RuntimeError: no thread starts while the interpreter ends.
                self._deaf = True
                logger.warning("No wake-ups from other processes on %s, waits poll instead: %s", self._database, error)

    def post(self, hints: Sequence[Hint]) -> None:
        """Tell every other process that listens, after the commit. Never blocks, never fails."""
        if not os.access(self._folder, os.F_OK):
            return  # Nobody listens: whoever leaves last removes the folder.
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns  # noqa: PTH116 - half the cost of Path.stat, on every commit
        except OSError:
            return
        if changed_ns == self._nobody_at_ns:
            return
        with self._lock:
            if self._closed:
                return
            if changed_ns != self._peers_at_ns:
                self._find_peers(changed_ns)
            for datagram in _datagrams(hints) if self._peers else ():
                self._send(datagram)

    def close(self) -> None:
        """Listen and send no more; ends the listener's thread. Idempotent."""
        with self._lock:
            self._closed = True
            listener, self._listener = self._listener, None
            self._forget_peers()
        if listener:
            listener.close()

    def restart_in_child(self) -> None:
        """Drop what a forked child inherited: the socket in the folder and its listener stay with the parent."""
        if self._listener:
            self._listener.drop()
        self._forget_peers()
        self._begin()

    # Under the lock

    def _find_peers(self, changed_ns: int) -> None:
        read_ns = time.time_ns()
        own = self._listener.name if self._listener else None
        try:
            with opened(self._folder, self._database) as folder:
                names = folder.names() - {own}
                for name in self._peers.keys() - names:
                    self._peers.pop(name).close()
                for name in names - self._peers.keys():
                    self._connect(folder, name)
        except OSError as error:
            logger.debug("Could not look for listeners in %s: %s", self._folder, error)
            return
        settled = changed_ns + RACY_NS < read_ns
        self._peers_at_ns = changed_ns if settled else -1
        self._nobody_at_ns = changed_ns if settled and not self._peers else -1

    def _connect(self, folder: SocketFolder, name: str) -> None:
        if not folder.is_socket(name):
            return
        # A socket each: what a stopped process leaves unread counts against its sender's buffer, and must not silence the others.
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        peer.settimeout(0.0)
        try:
            peer.connect(folder.address_of(name))
        except OSError as error:
            peer.close()
            if isinstance(error, ConnectionRefusedError):
                self._bury(name)
        else:
            self._peers[name] = peer

    def _send(self, datagram: bytes) -> None:
        for name, peer in list(self._peers.items()):
            try:
                peer.send(datagram)
            except ConnectionRefusedError:
                self._peers.pop(name).close()
                self._bury(name)
            except OSError:
                continue  # Its queue is full: it will notice (see _Listener), or its slow poll.

    def _bury(self, name: str) -> None:
        """Remove the socket of a process that is gone. A name is never used twice, so it cannot be a newer one's."""
        with suppress(OSError), opened(self._folder, self._database) as folder:
            folder.remove(name)
        remove_folder(self._folder)

    def _forget_peers(self) -> None:
        while self._peers:
            self._peers.popitem()[1].close()


class _Listener:
    """One socket in the folder, and the thread that reads it."""

    def __init__(self, folder: str, database: str | os.PathLike[str], on_hint: OnHint) -> None:
        self.name = f"{os.getpid()}-{token_hex(6)}"
        self._folder = folder
        self._database = database
        self._hidden = f".{self.name}"
        self._on_hint = on_hint
        self._closing = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
        self._doorbell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._doorbell.settimeout(0.0)
        self._thread = threading.Thread(target=self._read, name="holdfast wake-ups", daemon=True)
        try:
            self._start()
        except BaseException:
            self._end()  # An interrupt may strike when the thread runs already.
            self.drop()
            raise

    def _start(self) -> None:
        for tries_left in reversed(range(MOVES)):
            make_folder(self._folder, self._database)
            try:
                with opened(self._folder, self._database) as folder:
                    self._bind(folder)
            except FileNotFoundError:
                # The last to leave removed the folder in between.
                if not tries_left:
                    raise
            else:
                self._thread.start()
                return

    def _bind(self, folder: SocketFolder) -> None:
        """Bind under a name that no one sends to, then rename: for a moment a socket is there and refuses, as if its process were gone."""
        self._socket.bind(folder.address_of(self._hidden))
        self._doorbell.connect(folder.address_of(self._hidden))
        folder.share_socket(self._hidden, self._database)
        folder.rename(self._hidden, self.name)

    def _read(self) -> None:
        # A sender that finds the queue full drops its hints. So many datagrams in a row that the queue may have been full therefore count
        # as a hint for everything: what was dropped was committed before the last of them was read.
        depth = _queue_depth()
        in_a_row = 0
        while not self._closing:
            try:
                datagram = self._socket.recv(DATAGRAM_BYTES, socket.MSG_DONTWAIT if in_a_row else 0)
            except BlockingIOError:
                in_a_row = 0
                continue
            except OSError:
                if self._closing:
                    return
                raise
            self._tell(datagram)
            in_a_row += 1
            if in_a_row == depth:
                in_a_row = 0
                self._tell(_OVERFLOW)

    def _tell(self, datagram: bytes) -> None:
        try:
            hints = _decoder.decode(datagram)
        except (DecodeError, UnicodeDecodeError):  # Not from us, or the doorbell.
            return
        for topic, count in hints:
            try:
                self._on_hint(topic, count)
            except Exception:
                logger.exception("A wake-up for %r could not be passed on", topic)

    def close(self) -> None:
        self._end()
        if self._thread is not threading.current_thread():
            self._thread.join()
        self.drop()

    def _end(self) -> None:
        self._closing = True
        self._remove()
        with suppress(OSError):  # Its queue is full: then it is awake.
            self._doorbell.send(b"")

    def _remove(self) -> None:
        with suppress(OSError), opened(self._folder, self._database) as folder:
            for name in (self._hidden, self.name):
                folder.remove(name)
        remove_folder(self._folder)

    def drop(self) -> None:
        self._socket.close()
        self._doorbell.close()


def _datagrams(hints: Sequence[Hint]) -> Iterator[bytes]:
    whole = _encoder.encode(hints)
    if len(whole) <= DATAGRAM_BYTES:
        yield whole
    elif len(hints) == 1:
        yield _OVERFLOW
    else:
        middle = len(hints) // 2
        yield from _datagrams(hints[:middle])
        yield from _datagrams(hints[middle:])


def _queue_depth() -> int:
    """Return how many datagrams a socket holds at least before it is full: ten is Linux's default, more would fit elsewhere."""
    try:
        depth = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text("ascii"))
    except OSError:
        depth = 10
    return max(1, min(depth, RECEIVED_BYTES // (2 * DATAGRAM_BYTES)))


_OVERFLOW = _encoder.encode([(EVERYTHING, 1)])

_everyone: "weakref.WeakSet[Wakeups]" = weakref.WeakSet()


def _restart_all() -> None:
    for wakeups in list(_everyone):
        wakeups.restart_in_child()


call_in_child(_restart_all)
