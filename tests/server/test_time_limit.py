"""How long one command may take: one that takes longer is ended, nothing of it is kept, and the store is there for the next."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from holdfast import connect
from holdfast.commands import Browse, Command, Count, Filter, Put, Together
from holdfast.commands.request import Request, current
from holdfast.errors import TookTooLong
from holdfast.server.app import Options
from holdfast.stores import Store
from holdfast.stores.group_commit import Job
from holdfast.stores.http.store import HttpStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing.conformance.asking import item
from holdfast.testing.conformance.threads import PATIENCE_S
from tests.server.serving import Served
from tests.server.test_routes import until
from tests.server.test_tokens import ask
from tests.stores_by_name import url_of

MESSAGES = 5_000
SHORT_S = 0.000_5
"""Less than any machine takes for what these tests ask."""

SHORTER_S = 0.000_001
"""Less than several commands take in memory."""

MANY: dict[str, Any] = {"queue": "many", "items": [{"id": str(number), "value": number} for number in range(MESSAGES)]}
SOUGHT = {"queue": "jobs", "which": {"error_contains": "nowhere"}}
"""It goes through all messages, which a count does not."""
SEARCH = Browse("jobs", which=Filter(error_contains="nowhere"))
SEARCHES = {"commands": [SOUGHT | {"type": "Browse"}] * 10}


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    store = connect(url_of(request.param, tmp_path))
    store.execute(Put("jobs", [item(str(number)) for number in range(MESSAGES)]))
    return store


@pytest.fixture
def served(store: Store) -> Iterator[Served]:
    served = Served(store, Options(command_s=SHORTER_S if isinstance(store, MemoryStore) else SHORT_S))
    yield served
    served.close()


@pytest.mark.parametrize("step", [SEARCHES, SEARCHES | {"id": "named"}], ids=["reads", "named"])
def test_a_step_that_takes_too_long_is_ended(served: Served, store: Store, step: Any) -> None:
    status, problem = ask(served, "/v1/together", step)
    assert (status, problem["code"]) == (408, "took_too_long")
    assert " s and was ended; nothing was written: request less at once" in problem["detail"]
    assert len(store.execute(Browse("jobs", limit=1)).messages) == 1


def test_what_a_step_wrote_before_it_was_ended_is_not_kept(served: Served, store: Store) -> None:
    put = {"type": "Put", "queue": "new", "items": [{"id": "a", "value": 1}]}
    assert ask(served, "/v1/together", {"commands": [put, *SEARCHES["commands"][:9]]})[0] == 408
    assert store.execute(Count("new")).ready == 0


def test_the_client_raises_what_the_server_says(served: Served) -> None:
    client = HttpStore(served.url)
    with pytest.raises(TookTooLong, match="request less"):
        client.execute(Together([SEARCH] * 10))
    client.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db", durability="process")
    store.execute(Put("jobs", [item(str(number)) for number in range(MESSAGES)]))
    yield store
    store.close()


def test_sqlite_ends_a_statement_in_the_middle(sqlite: SqliteStore) -> None:
    served = Served(sqlite, Options(command_s=SHORT_S / 10))
    assert ask(served, "/v1/browse", SOUGHT)[0] == 408
    assert ask(served, "/v1/put", MANY)[0] == 408
    assert sqlite.execute(Browse("many")).messages == []
    assert sqlite.execute(Put("jobs", [item("last")])).created == [True]
    served.close()


def test_what_shares_a_commit_with_what_took_too_long_is_done(sqlite: SqliteStore) -> None:
    first, last = Job(Put("new", [item("a")]), Request("other", 60.0)), Job(Put("new", [item("b")]), Request("other", 60.0))
    slow = Job(Together([Put("new", [item("c")]), *[SEARCH] * 10], id="slow"), Request("me", SHORT_S))
    sqlite.run([first, slow, last])
    assert isinstance(slow.error, TookTooLong)
    assert [first.result().created, last.result().created] == [[True], [True]]
    assert sqlite.execute(Count("new")).ready == 2


def test_postgres_ends_a_command_and_has_its_connection_back(tmp_path: Path) -> None:
    url = url_of("postgres", tmp_path)
    store = PostgresStore(url)
    store.execute(Put("jobs", [item("a")]))
    served = Served(store, Options(command_s=0.1))
    with psycopg.connect(store.address.conninfo) as other:
        other.execute(sql.SQL("lock table {}.messages in access exclusive mode").format(sql.Identifier(store.address.schema)))
        for number in range(store.address.pool + 1):
            status, problem = ask(served, "/v1/put", {"queue": "jobs", "items": [{"id": f"n{number}", "value": 1}]})
            assert (status, problem["code"]) == (408, "took_too_long")
    served_again = Served(PostgresStore(url))
    assert ask(served_again, "/v1/browse", {"queue": "jobs"})[1]["messages"][0]["id"] == "a"
    assert ask(served_again, "/v1/count", {"queue": "jobs"})[1]["ready"] == 1
    served_again.close()
    served.close()


def leave_after(served: Served, path: str, body: bytes, when: Callable[[], bool]) -> None:
    """Ask, and hang up once it is so."""
    host, port = served.url.removeprefix("http://").split("/")[0].split(":")
    name = served.url.rpartition("/")[2]
    with socket.create_connection((host, int(port)), PATIENCE_S) as client:
        head = b"POST /%s%s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        client.sendall(head % (name.encode(), path.encode(), len(body)) + body)
        until(when)


class Endless(SqliteStore):
    """Counts until nobody waits for it any more."""

    is_counting = False
    is_ended = False

    def _read(self, command: Command[Any]) -> Any:
        if isinstance(command, Count):
            self.is_counting = True
            until(lambda: current.get().is_over())
            self.is_ended = True
        return super()._read(command)


def test_what_reads_much_ends_when_its_client_leaves(tmp_path: Path) -> None:
    store = Endless(tmp_path / "store.db", durability="process")
    served = Served(store)
    leave_after(served, "/v1/count", b'{"queue":"jobs"}', lambda: store.is_counting)
    until(lambda: store.is_ended)
    served.close()


def test_postgres_ends_what_reads_much_when_its_client_leaves(tmp_path: Path) -> None:
    store = PostgresStore(url_of("postgres", tmp_path))
    served = Served(store, Options(command_s=PATIENCE_S))
    with psycopg.connect(store.address.conninfo) as holder, psycopg.connect(store.address.conninfo, autocommit=True) as onlooker:
        holder.execute(sql.SQL("lock table {}.messages in access exclusive mode").format(sql.Identifier(store.address.schema)))

        def waits() -> bool:
            asked = "select count(*) from pg_locks where not granted and pid in (select pid from pg_stat_activity where datname = %s)"
            row = onlooker.execute(asked, (store.database,)).fetchone()
            return row is not None and row[0] > 0

        leave_after(served, "/v1/count", b'{"queue":"jobs","which":{"label":"a"}}', waits)
        until(lambda: not waits())
    served.close()
