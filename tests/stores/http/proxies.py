"""A proxy between a client and its server that loses what a test tells it to lose."""

import contextlib
import socket
import threading
from typing import Self


class Proxy:
    """Passes bytes on; `lose_answers` times it cuts the connection instead of passing an answer back."""

    def __init__(self, target: str) -> None:
        host, _, rest = target.removeprefix("http://").partition(":")
        port, _, self._path = rest.partition("/")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.lose_answers = 0
        self.lost = 0
        self.requests: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/{self._path}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                threading.Thread(target=self._pass, args=(client, server), kwargs={"to_server": True}, daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client), kwargs={"to_server": False}, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, *, to_server: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if to_server:
                    self.requests.append(data)
                elif self.lose_answers:
                    self.lose_answers -= 1
                    self.lost += 1
                    break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
