"""A relay between clients and a server that falls silent, as a network that drops packets does: nothing is closed, nothing arrives."""

import socket
import threading
from contextlib import suppress
from typing import Literal, Self
from urllib.parse import urlsplit, urlunsplit

Way = Literal["to server", "to client"]


class Relay:
    """Passes bytes on until it is told not to; connections that are made afterwards are passed on again, unless told otherwise."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._target = (self._parts.hostname or "127.0.0.1", self._parts.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._deaf: set[Way] = set()
        # Guards the connections there are, and tells of an answer that was kept back.
        self._changed = threading.Condition()
        self._connections: list[_Connection] = []
        self.cut_after: int | None = None
        """How many bytes of answers new connections pass on before they are cut."""
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The server's URL, through the relay."""
        login = self._parts.netloc.rpartition("@")[0]
        here = f"127.0.0.1:{self._listener.getsockname()[1]}"
        return urlunsplit(self._parts._replace(netloc=f"{login}@{here}" if login else here))

    def fall_silent(self, *ways: Way, new_too: bool = False) -> None:
        """Pass on nothing more, in these directions or in both; with `new_too` not even on connections that are made from now on."""
        deaf = set(ways) or {"to server", "to client"}
        with self._changed:
            for connection in self._connections:
                connection.deaf |= deaf
            if new_too:
                self._deaf |= deaf

    def recover(self) -> None:
        """Cut the connections there are, and pass on again what comes on new ones."""
        with self._changed:
            self._deaf.clear()
            for connection in self._connections:
                connection.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        with self._changed:
            for connection in self._connections:
                connection.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                connection = _Connection(client, socket.create_connection(self._target), set(self._deaf), self.cut_after)
                with self._changed:
                    self._connections.append(connection)
                connection.start()


class _Connection:
    def __init__(self, client: socket.socket, server: socket.socket, deaf: set[Way], cut_after: int | None) -> None:
        self._client, self._server = client, server
        self.deaf = deaf
        self._left = cut_after

    def start(self) -> None:
        for source, target, way in ((self._client, self._server, "to server"), (self._server, self._client, "to client")):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pass, args=(source, target, way), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, way: Way) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if way in self.deaf:
                    continue
                if way == "to client" and self._left is not None:
                    data, self._left = data[: self._left], max(0, self._left - len(data))
                    target.sendall(data)
                    if not self._left:
                        break
                    continue
                target.sendall(data)
        if way not in self.deaf:
            self.cut()

    def cut(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
