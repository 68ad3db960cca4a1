"""What a Redis store survives: its server killed, its connections cut, its scripts forgotten."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from holdfast.commands import Change, Claim, Put, Read, Settle, Write
from holdfast.commands.topics import queue_topic
from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.records import Message
from holdfast.stores.redis import RedisStore, listening
from holdfast.stores.redis.scripts import script
from holdfast.stores.retrying import Patience
from holdfast.testing.conformance.asking import JOBS, claim, drain, item, put, raw, read, settle, stats, write
from holdfast.testing.conformance.threads import Doing
from holdfast.testing.conformance.waiting import waiting_claim
from holdfast.testing.histories import Delivery, leased_violations
from holdfast.testing.servers.redis import RedisServer
from tests.server.test_routes import until

SAFE = {"appendonly": "yes", "appendfsync": "always"}
MESSAGES = 300


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer(settings=SAFE) as server:
        yield server


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    store = RedisStore(server.url)
    yield store
    store.close()


class Crew:
    """Producers and workers on one store, and what they saw."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self.put: set[str] = set()
        self.deliveries: list[Delivery] = []
        self.lock = threading.Lock()
        self.is_over = threading.Event()
        self.half = threading.Event()
        self.all = [Doing(self.produce), *[Doing(lambda name=name: self.work(name)) for name in range(4)]]  # type: ignore[misc]

    def produce(self) -> None:
        for number in range(MESSAGES):
            self.store.execute(Put(JOBS, [item(str(number))]))
            self.store.execute(Write("counts", [Change("put", do="increment", by=1)]))
            with self.lock:
                self.put.add(str(number))
            if number == MESSAGES // 2:
                self.half.set()

    def work(self, name: int) -> None:
        while not self.is_over.is_set():
            for message in self.claim(str(name)):
                accepted = self.store.execute(Settle([message.receipt])).held[0]
                self.note(message, accepted=accepted)

    def claim(self, name: str) -> list[Message]:
        with self.store.mark(queue_topic(JOBS)) as mark:
            found = self.store.execute(Claim(JOBS, name, 600.0)).messages
            if not found:
                self.store.wait(mark, 0.2)
            else:
                mark.used()
        return found

    def note(self, message: Message, *, accepted: bool) -> None:
        with self.lock:
            done = Delivery(message.id, message.holder, message.token, message.since, message.until, "done", accepted)
            self.deliveries.append(done)
            if len(self.deliveries) == MESSAGES:
                self.is_over.set()

    def finish(self) -> None:
        for doing in self.all:
            doing.result("a producer or a worker")
        assert leased_violations(self.deliveries, put=self.put) == []
        assert len(self.deliveries) == MESSAGES, "every message was done exactly once"
        assert read(self.store, dict="counts") == {"put": MESSAGES}, "every increment was applied exactly once"
        assert stats(self.store).total == 0


def test_a_server_killed_in_the_middle_of_work_loses_nothing_and_work_goes_on(server: RedisServer, store: RedisStore) -> None:
    crew = Crew(store)
    for _ in range(3):
        assert crew.half.wait(60) or crew.is_over.is_set()
        server.restart()
    crew.finish()


def test_connections_cut_again_and_again_apply_every_command_once(server: RedisServer, store: RedisStore) -> None:
    crew = Crew(store)
    other = RedisStore(server.url)
    while not crew.is_over.is_set() and any(not doing.is_over for doing in crew.all):
        other.connections.ask(("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), ("CLIENT", "KILL", "TYPE", "pubsub"))
        crew.is_over.wait(0.02)
    other.close()
    crew.finish()


def test_scripts_that_the_server_forgot_are_sent_again(store: RedisStore) -> None:
    crew = Crew(store)
    while not crew.is_over.is_set() and any(not doing.is_over for doing in crew.all):
        store.connections.ask(("SCRIPT", "FLUSH"))
        crew.is_over.wait(0.01)
    crew.finish()


def test_a_command_whose_answer_was_lost_is_applied_once(server: RedisServer, store: RedisStore) -> None:
    write(store, "n", 0)
    command = Write("settings", [Change("n", do="increment", by=1)], id="once")
    name, words = store.request(command)
    connection = store.connections._take()
    assert connection is not None
    connection.send_command("EVAL", script(name).text, *words)
    connection.disconnect()
    store.execute(Write("settings", [Change("other", value=raw(1))]))
    store.execute(command)
    assert read(store, "n") == {"n": 1}


def test_a_waiter_hears_of_what_was_put_while_its_connection_was_down(server: RedisServer, store: RedisStore) -> None:
    def claim_when_there() -> list[Message]:
        with store.mark(queue_topic(JOBS)) as mark:
            while not (found := store.execute(Claim(JOBS, "waiter", 60.0)).messages):
                store.wait(mark, 1_000_000.0)
            mark.used()
            return found

    waiter = Doing(claim_when_there)
    other = RedisStore(server.url)
    other.connections.ask(("CLIENT", "KILL", "TYPE", "pubsub"))
    put(other, "a")
    assert [message.id for message in waiter.result("a waiter whose connection was cut")] == ["a"]
    other.close()


def test_what_was_claimed_before_a_restart_is_still_held_after_it(server: RedisServer, store: RedisStore) -> None:
    put(store, "a", "b")
    held = claim(store, lease_s=600)
    server.restart()
    assert drain(store) == ["b"]
    assert settle(store, held) == [True]


def test_tokens_grow_over_a_server_that_lost_its_data(server: RedisServer) -> None:
    with RedisServer() as forgetful:
        store = RedisStore(forgetful.url)
        put(store, "a")
        before = claim(store)[0].token
        forgetful.restart()
        put(store, "a")
        assert claim(store)[0].token > before, "a fence must not go back, whatever the server has forgotten"
        store.close()


def test_a_server_that_stays_away_is_unavailable_and_says_what_is_known(server: RedisServer) -> None:
    store = RedisStore(server.url, patience=Patience(most_s=0.2))
    put(store, "a")
    server.kill()
    with pytest.raises(StoreUnavailable):
        store.execute(Read("settings"))
    server.start()
    assert drain(store) == ["a"]
    store.close()


def test_a_server_that_does_not_answer_leaves_the_outcome_unknown(server: RedisServer) -> None:
    store = RedisStore(f"{server.url}?socket_timeout=0.5", patience=Patience(most_s=1))
    put(store, "a")
    with server.paused(), pytest.raises(OutcomeUnknown):
        put(store, "b")
    store.close()


@pytest.mark.parametrize("payload", ["boo", "", "-1", "9" * 5_000])
def test_what_others_publish_harms_nobody_who_waits(store: RedisStore, server: RedisServer, payload: str) -> None:
    waiter = waiting_claim(store)
    with Redis.from_url(server.url) as other:
        other.publish(f"{store._address.prefix}:wake:{queue_topic(JOBS)}", payload)
    put(store, "a")
    assert [message.id for message in waiter.result("a claim that waited")] == ["a"]
    assert "holdfast-redis-listener" in [thread.name for thread in threading.enumerate()]


def test_a_listener_without_topics_stays_alive(store: RedisStore, server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "TICK_S", 0.05)
    monkeypatch.setattr(listening, "KEPT_S", 0.0)
    waiter = waiting_claim(store)
    put(store, "a")
    waiter.result("a claim that waited")
    with Redis.from_url(server.url) as other:
        # Then it has none, and its PING is answered as to anybody: once more, and that answer was read.
        until(lambda: other.pubsub_channels() == [])
        before = pings(other)
        until(lambda: pings(other) > before + 1)
    waiter = waiting_claim(store)
    put(store, "b")
    assert [message.id for message in waiter.result("a claim that waited")] == ["b"]
    assert "holdfast-redis-listener" in [thread.name for thread in threading.enumerate()]


def pings(other: Any) -> int:
    told = other.info("commandstats").get("cmdstat_ping")
    return told["calls"] if told else 0
