"""Statements are prepared only in a session that is the store's own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from holdfast.connect import connect
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.conformance.asking import claim, put


class Pooler:
    """Passes a connection on, but tells of another process than the server's, as those do that lend sessions."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url.partition("?")[0])
        self._server = (str(parts["host"]), int(str(parts["port"])))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{parts['port']}/", f":{self._listening.getsockname()[1]}/")
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        # The other direction may have ended first.
        with source, suppress(OSError):
            while data := source.recv(65_536):
                # The message that names the process: a K, its length, the process and a secret.
                head, key, rest = data.partition(b"K\x00\x00\x00\x0c")
                target.sendall(head + key + b"\x7f" + rest[1:] if key else data)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listening.close()


PREPARED = b"select count(*) from pg_prepared_statements"


def prepared_through(url: str) -> int:
    """How many statements a session has prepared that answered a few calls."""
    store = connect(url)
    assert isinstance(store, PostgresStore)
    put(store, "a", "b")
    claim(store, 2)
    with store._pool.connection() as connection:
        row = connection.execute(PREPARED, prepare=False).fetchone()
    store.close()
    assert row is not None
    return int(row[0])


@pytest.fixture
def url(postgres_server: str) -> Iterator[str]:
    yield f"{postgres_server}?schema=pooler"
    with psycopg.connect(postgres_server) as connection:
        connection.execute("drop schema pooler cascade")


def test_statements_are_prepared_where_the_session_is_ours(url: str) -> None:
    assert prepared_through(url) > 0


def test_behind_a_pooler_that_lends_sessions_nothing_is_prepared(url: str) -> None:
    pooler = Pooler(url)
    assert prepared_through(pooler.url) == 0
    pooler.close()
