"""Which servers are refused, in words that help and never show the password, and what the others promise."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.commands import Claim, Names, Put
from holdfast.connect import connect
from holdfast.errors import HoldfastError, NotAllowed, SchemaTooNew, StoreError, StoreFull, StoreUnavailable
from holdfast.stores.redis import RedisStore
from holdfast.stores.redis import store as store_module
from holdfast.stores.retrying import Patience
from holdfast.testing.conformance.asking import claim, drain, item, put
from holdfast.testing.servers.program import free_port
from holdfast.testing.servers.redis import RedisServer, found_binaries, redis
from tests.servers import own_redis_url

SECRET = "s3cr3t-pass"  # noqa: S105 - of a server that lives for a test
RIGHTS = ("~holdfast", "~holdfast:*", "resetchannels", "&holdfast:*", "+@all", "-@dangerous", "+info")


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "OPENING", Patience(most_s=0.1))


def fill(store: RedisStore) -> None:
    for number in range(100):
        store.execute(Put("jobs", [item(str(number), "x" * 100_000)]))


def refused(url: str, error: type[HoldfastError], *words: str) -> None:
    with pytest.raises(error) as caught:
        RedisStore(url)
    told = f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__context__}"
    assert SECRET not in told, "an error shows the password"
    for word in words:
        assert word in str(caught.value)


def test_a_wrong_password_is_refused_without_showing_it() -> None:
    with RedisServer(settings={"requirepass": "another"}) as server:
        refused(f"redis://:{SECRET}@127.0.0.1:{server.port}/0", NotAllowed, "password", str(server.port))


def test_a_password_is_no_part_of_the_url_that_a_store_shows() -> None:
    with RedisServer(settings={"requirepass": SECRET}) as server:
        store = RedisStore(server.url)
        put(store, "a")
        assert SECRET not in store.url
        assert SECRET not in repr(store.guarantees)
        store.close()


def test_a_host_that_cannot_be_reached_is_unavailable() -> None:
    refused(f"redis://user:{SECRET}@127.0.0.1:{free_port()}/0", StoreUnavailable, "127.0.0.1", "nothing was written")


def test_a_database_that_does_not_exist_is_refused(server: RedisServer) -> None:
    refused(f"redis://127.0.0.1:{server.port}/99", StoreError, "99")
    with pytest.raises(ValueError, match="has no database"):
        connect(f"redis://127.0.0.1:{server.port}/jobs")


def test_an_option_that_cannot_be_is_refused(server: RedisServer) -> None:
    for options in ("eviction=maybe", "prefix=", "prefix={x}", "socket_timeout=soon", "colour=red"):
        with pytest.raises(ValueError, match=r"prefix|eviction|Redis"):
            connect(f"{server.url}?{options}")


def test_an_eviction_policy_that_may_lose_data_is_refused_unless_allowed() -> None:
    with RedisServer(settings={"maxmemory-policy": "allkeys-lru"}) as server:
        refused(server.url, StoreError, "allkeys-lru", "noeviction", "eviction=allow")
        store = RedisStore(f"{server.url}?eviction=allow")
        put(store, "a")
        assert store.guarantees.settings["maxmemory-policy"] == "allkeys-lru"
        store.close()


def test_a_redis_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its nodes talk to each other on a port that is 10,000 higher.
    port = next(port for port in iter(free_port, 0) if port <= 55_535)
    monkeypatch.setitem(RedisServer.__init__.__globals__, "free_port", lambda: port)
    with RedisServer(settings={"cluster-enabled": "yes"}) as server:
        refused(server.url, StoreError, "Cluster")


def test_a_read_only_replica_is_refused(server: RedisServer) -> None:
    with RedisServer(settings={"replicaof": f"127.0.0.1 {server.port}"}) as replica:
        refused(replica.url, StoreError, "read-only replica", "primary")


def test_a_primary_that_became_a_replica_is_unavailable_and_nothing_was_written(server: RedisServer) -> None:
    store = RedisStore(server.url, patience=Patience(most_s=0.1))
    with RedisServer() as other:
        store.connections.ask(("REPLICAOF", "127.0.0.1", str(other.port)))
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            put(store, "a")
    store.close()


def test_a_user_without_scripting_is_not_allowed(server: RedisServer) -> None:
    admin = RedisStore(server.url)
    admin.connections.ask(("ACL", "SETUSER", "limited", "on", f">{SECRET}", "~*", "&*", "+@all", "-@scripting"))
    store = RedisStore(f"redis://limited:{SECRET}@127.0.0.1:{server.port}/0")
    with pytest.raises(NotAllowed, match="EVALSHA"):
        put(store, "a")
    store.close()
    admin.close()


def test_a_user_with_our_keys_alone_can_do_everything(server: RedisServer) -> None:
    admin = RedisStore(server.url)
    admin.connections.ask(("ACL", "SETUSER", "jobs", "on", f">{SECRET}", *RIGHTS))
    store = RedisStore(f"redis://jobs:{SECRET}@127.0.0.1:{server.port}/0")
    put(store, "a")
    assert drain(store) == ["a"]
    assert store.guarantees.settings["appendfsync"] == "unknown", "CONFIG is not allowed to this user"
    store.close()
    admin.close()


def test_a_server_out_of_memory_refuses_whole_and_says_so() -> None:
    with RedisServer(settings={"maxmemory": "3mb"}) as server:
        store = RedisStore(server.url)
        with pytest.raises(StoreFull, match="nothing was written"):
            fill(store)
        store.connections.ask(("CONFIG", "SET", "maxmemory", "0"))
        whole = claim(store, 100)
        assert all(len(message.value) > 100_000 for message in whole), "half a message was kept"
        store.close()


@pytest.mark.parametrize(
    ("settings", "survives"),
    [
        ({"appendonly": "yes", "appendfsync": "always"}, "power"),
        ({"appendonly": "yes", "appendfsync": "everysec"}, "nothing"),
        ({}, "nothing"),
    ],
)
def test_guarantees_are_those_of_the_servers_settings(settings: dict[str, str], survives: str) -> None:
    with RedisServer(settings=settings) as server:
        store = RedisStore(server.url)
        assert store.guarantees.survives == survives
        assert store.guarantees.shared_by == "hosts"
        assert store.guarantees.engine.split()[0] in ("Redis", "Valkey")
        assert store.guarantees.settings["appendfsync"] == settings.get("appendfsync", "everysec")
        store.close()


@pytest.mark.parametrize("name", ["{", "}", "{}", "a}:messages", "100%", "%7B", '"quoted"', "o'clock", "a:b", "ä€\U0001f600", "*", "[a]"])
def test_any_name_is_a_queue_of_its_own(name: str) -> None:
    store = RedisStore(own_redis_url())
    put(store, "a", queue=name)
    put(store, "b", queue=name + "x")
    assert [settings.name for settings in store.execute(Names("queue")).settings] == sorted([name, name + "x"])
    assert drain(store, name) == ["a"]
    store.close()


def test_it_is_reached_by_every_kind_of_url(server: RedisServer) -> None:
    port, socket = server.port, server.socket_url.removeprefix("unix://")
    for url in (f"redis://127.0.0.1:{port}/0", f"valkey://127.0.0.1:{port}", f"redis+unix://{socket}", f"valkey+unix://{socket}?db=0"):
        store = connect(url)
        put(store, url)
        assert drain(store) == [url]
        store.close()


def test_two_prefixes_are_two_stores(server: RedisServer) -> None:
    one, two = RedisStore(f"{server.url}?prefix=one"), RedisStore(f"{server.url}?prefix=two")
    put(one, "a")
    assert two.execute(Claim("jobs")).messages == []
    assert drain(one) == ["a"]
    one.close()
    two.close()


def ask(server: RedisServer, *words: str) -> None:
    store = RedisStore(f"{server.url}?prefix=elsewhere")
    store.connections.ask(words)
    store.close()


def test_data_of_a_newer_form_is_refused(server: RedisServer) -> None:
    ask(server, "SET", "holdfast:format", "3")
    refused(server.url, SchemaTooNew, "has format 3", "upgrade Holdfast")


def test_data_from_before_forms_had_numbers_is_refused(server: RedisServer) -> None:
    ask(server, "SET", "holdfast:counter", "1790000000000000")
    refused(server.url, StoreError, "has format 1", "another prefix")


def test_a_store_that_was_emptied_under_its_users_can_be_opened_again(server: RedisServer) -> None:
    one = RedisStore(server.url)
    ask(server, "FLUSHALL")
    put(one, "a")
    two = RedisStore(server.url)
    assert drain(two) == ["a"]
    one.close()
    two.close()


def test_a_url_of_the_environment_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TEST_REDIS_URL", "redis://elsewhere:1/2")
    with redis() as url:
        assert url == "redis://elsewhere:1/2"


def test_every_server_found_here_can_be_started() -> None:
    for binary in found_binaries():
        assert isinstance(binary, Path)
        with RedisServer(binary) as server:
            store = RedisStore(server.url)
            put(store, "a")
            assert drain(store) == ["a"]
            store.close()
