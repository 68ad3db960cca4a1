"""Poolers in transaction mode: whoever connects through one meets another session of the server in each transaction."""

import shutil
import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict

from holdfast.testing.servers.program import Program, answers_at, free_port

ENCRYPTION = (80877103, 80877104)
"""What a client sends first to ask whether it may encrypt, by TLS or by GSSAPI."""
SASL_FINAL = 12
NOBODY = struct.pack("!I", 0x7FFFFFFF)
"""The number of a process that there is not."""
SPARE = 5


def through(port: int, url: str) -> str:
    """The same URL, with the pooler at the port instead of the server."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{port}"))


class Rotation:
    """A pooler as small as can be: each client brings a session into the pool, and each transaction gets the one unused for longest."""

    def __init__(self, url: str) -> None:
        known = conninfo_to_dict(url)
        self._server = (str(known["host"]), int(str(known["port"])))
        self._free: deque[socket.socket] = deque()
        self._count = 0
        # Guards the free sessions and the count of all, and tells of one that has become free.
        self._is_free = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        session: socket.socket | None = None
        with client, suppress(OSError, EOFError):
            self._begin(client)
            while True:
                kind, message = read(client)
                if kind == b"X":
                    break
                session = session or self._take()
                session.sendall(message)
                # Every other message is followed by one of these, and answered together with it.
                if kind in b"QS" and relay(session, client) == b"I":
                    self._give(session)
                    session = None
        self._leave(session)

    def _leave(self, session: socket.socket | None) -> None:
        """Where a client goes, so does a session: the one in whose transaction it was, or any; but a few stay."""
        with self._is_free:
            if session is None and self._count > SPARE and self._free:
                session = self._free.popleft()
            if session is not None:
                self._count -= 1
                session.close()

    def _begin(self, client: socket.socket) -> None:
        """Let the client sign in at a session of its own, which is everybody's before the client hears that it has one."""
        length, code, rest = begin(client)
        while code in ENCRYPTION:
            client.sendall(b"N")
            length, code, rest = begin(client)
        session = socket.create_connection(self._server)
        session.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session.sendall(struct.pack("!II", length, code) + rest)
        while True:
            kind, message = read(session)
            if kind == b"Z":
                with self._is_free:
                    self._count += 1
                self._give(session)
            # The process behind the connection will be another in each transaction: poolers make one up.
            client.sendall(message[:5] + NOBODY + message[9:] if kind == b"K" else message)
            if kind == b"E":
                raise EOFError
            if kind == b"Z":
                return
            if kind == b"R" and struct.unpack_from("!I", message, 5)[0] not in (0, SASL_FINAL):
                session.sendall(read(client)[1])

    def _take(self) -> socket.socket:
        with self._is_free:
            self._is_free.wait_for(lambda: self._free)
            return self._free.popleft()

    def _give(self, session: socket.socket) -> None:
        with self._is_free:
            self._free.append(session)
            self._is_free.notify()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        with self._is_free:
            for session in self._free:
                session.close()


def exactly(source: socket.socket, count: int) -> bytes:
    found = source.recv(count, socket.MSG_WAITALL)
    if len(found) < count:
        raise EOFError
    return found


def begin(client: socket.socket) -> tuple[int, int, bytes]:
    """The first message of a client, which has no kind: its length, its code and the rest."""
    length, code = struct.unpack("!II", exactly(client, 8))
    return length, code, exactly(client, length - 8) if length > 8 else b""


def read(source: socket.socket) -> tuple[bytes, bytes]:
    """The kind of the next message, and the whole of it."""
    head = exactly(source, 5)
    rest: int = struct.unpack("!I", head[1:])[0] - 4
    return head[:1], head + (exactly(source, rest) if rest else b"")


def relay(session: socket.socket, client: socket.socket) -> bytes:
    """Pass on what the server answers, but for notifications, which are for nobody here; how its transaction stands then."""
    while True:
        kind, message = read(session)
        if kind != b"A":
            client.sendall(message)
        if kind == b"Z":
            return message[5:]


CONFIGURATION = """
[databases]
* = host={host} port={port} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
"""


class PgBouncer:
    """The real one, where it is installed."""

    def __init__(self, url: str) -> None:
        self.port: int = free_port()
        self._program = Program("pgbouncer")
        settings = self._program.folder / "pgbouncer.ini"
        settings.write_text(CONFIGURATION.format(listen=self.port, **conninfo_to_dict(url)), encoding="utf-8")
        self._program.start([found_pgbouncer() or "pgbouncer", settings], lambda: answers_at(self.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.close()


def found_pgbouncer() -> str | None:
    """Where PgBouncer is installed, if it is."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
