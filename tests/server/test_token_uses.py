"""When a token was last used is kept, but not by every request."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json

from holdfast import connect
from holdfast.commands import Read
from holdfast.server.app import Options
from holdfast.server.auth import token_uses
from holdfast.server.auth.token_uses import COARSE_S
from holdfast.server.auth.tokens import id_of, last_uses, revoke_token
from holdfast.server.namespaces.names import TOKEN_USES
from holdfast.stores import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.cli.running import holdfast
from tests.server.serving import Served
from tests.server.test_routes import until
from tests.server.test_tokens import ME, at_once, count, make


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Store:
    return MemoryStore(clock=clock)


@pytest.fixture
def served(store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(token_uses, "FLUSH_S", 0.0)
    served = Served(store, Options(now=lambda: clock.now_us() / 1e6))
    yield served
    served.close()


def revision(store: Store) -> int:
    return sum(entry.revision for entry in store.execute(Read(TOKEN_USES)).entries)


def test_the_last_use_of_a_token_is_written_once_in_a_while(served: Served, store: Store, clock: FakeClock) -> None:
    token, idle = make(store), make(store)
    assert last_uses(store) == {}
    assert count(served, token) == 200
    until(lambda: last_uses(store))
    assert last_uses(store).keys() == {id_of(token)}
    first, latest = revision(store), store.execute(Read(TOKEN_USES)).index
    clock.advance(COARSE_S / 2)
    assert [count(served, token) for _ in range(20)] == [200] * 20
    assert count(served) == 401
    assert store.execute(Read(TOKEN_USES)).index == latest, "reading writes nothing"
    clock.advance(COARSE_S)
    assert count(served, token) == 200
    until(lambda: revision(store) != first)
    assert id_of(idle) not in last_uses(store)


def test_with_the_token_its_use_is_forgotten(served: Served, store: Store) -> None:
    token = make(store)
    count(served, token)
    until(lambda: last_uses(store))
    revoke_token(store, id_of(token) or "", by=ME, rest=at_once)
    assert last_uses(store) == {}


def test_what_was_not_written_is_written_at_the_end_and_listed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    store = connect(url)
    token = make(store)
    served = Served(connect(url))
    assert count(served, token) == 200
    (told,) = json.decode(holdfast("token", "list", "--json", f"--url={url}").stdout)
    assert told["last_used_at"] is None
    served.close()
    (told,) = json.decode(holdfast("token", "list", "--json", f"--url={url}").stdout)
    assert told["last_used_at"] == last_uses(store)[id_of(token) or ""]
    assert "last used" in holdfast("token", "list", f"--url={url}").stdout
    store.close()
