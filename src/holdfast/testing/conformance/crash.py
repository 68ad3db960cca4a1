"""What outlives its process: everything that was acknowledged, whole, and nothing half."""

import multiprocessing
import os
import random
import signal
from multiprocessing.connection import Connection

import pytest

from holdfast.commands import Change, Changes, Claim, Configure, Count, Put, Together, Write
from holdfast.errors import QueueFull
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import (
    DICT,
    JOBS,
    acquire,
    browse,
    claim,
    claim_one,
    drain,
    events,
    grant,
    ids,
    is_seen,
    item,
    put,
    raw,
    read,
    renew,
    settle,
    stats,
    token,
    write,
)
from holdfast.testing.conformance.factory import Conformance, StoreFactory
from holdfast.testing.conformance.looking import pages
from holdfast.testing.conformance.threads import Doing
from holdfast.testing.conformance.waiting import waiting_claim

Ack = tuple[str, str]


class FileConformance(Conformance):
    """For stores that survive their process; the factory can be pickled and opens the same store again, also in another process."""

    kills = 3
    """How often a writer is killed."""

    def test_what_was_acknowledged_is_there_when_the_store_is_opened_again(self, factory: StoreFactory, clock: FakeClock) -> None:
        first = factory.make(clock)
        put(first, "ready", "leased", "dead", key=None)
        held = claim(first, 3)
        settle(first, held[2:], to="dead", error="why")
        settle(first, held[:1], to="ready")
        write(first, "a", {"n": 1}, fence=token(first))
        before = [browse(first, "ready"), browse(first, "leased"), browse(first, "dead"), read(first), events(first)]
        first.close()
        again = factory.make(clock)
        assert [browse(again, "ready"), browse(again, "leased"), browse(again, "dead"), read(again), events(again)] == before
        again.close()

    def test_claims_and_leases_go_on_when_the_store_is_opened_again(self, factory: StoreFactory, clock: FakeClock) -> None:
        first = factory.make(clock)
        put(first, "a", "b")
        held, lease = claim(first, lease_s=60), grant(first, lease_s=60)
        first.close()
        again = factory.make(clock)
        assert claim(again, 5, take=True)[0].id == "b"
        assert is_seen(acquire(again, lease_id="two").lease, lease)
        assert renew(again, lease) is not None
        assert settle(again, held) == [True]
        again.close()

    def test_tokens_go_on_growing_when_the_store_is_opened_again(self, factory: StoreFactory, clock: FakeClock) -> None:
        tokens = []
        for number in range(3):
            store = factory.make(clock)
            put(store, str(number))
            tokens.append(claim_one(store).token)
            store.close()
        assert tokens == sorted(set(tokens)), f"tokens must strictly grow, and were {tokens}"

    def test_a_watch_goes_on_where_it_was_when_the_store_is_opened_again(self, factory: StoreFactory, clock: FakeClock) -> None:
        indexes = []
        for number in range(3):
            store = factory.make(clock)
            put(store, str(number))
            indexes.append(store.execute(Changes(f"queue:{JOBS}")).latest)
            store.close()
            clock.advance(60)
        again = factory.make(clock)
        put(again, "last")
        assert [len(again.execute(Changes(f"queue:{JOBS}", index)).events) for index in indexes] == [3, 2, 1]
        again.close()

    def test_settings_are_there_when_the_store_is_opened_again(self, factory: StoreFactory, clock: FakeClock) -> None:
        first = factory.make(clock)
        first.execute(Configure("queue", JOBS, maxsize=1, paused=True))
        put(first, "a")
        first.close()
        again = factory.make(clock)
        assert claim(again) == []
        with pytest.raises(QueueFull):
            put(again, "b")
        again.close()

    def test_a_command_repeated_after_opening_again_is_applied_once(self, factory: StoreFactory, clock: FakeClock) -> None:
        command = Write(DICT, [Change("n", do="increment", by=1)], id="c1")
        first = factory.make(clock)
        write(first, "n", do="increment", by=1)
        answer = first.execute(command)
        first.close()
        again = factory.make(clock)
        assert again.execute(command) == answer
        assert read(again) == {"n": 2}
        again.close()

    def test_two_who_opened_it_see_each_others_changes(self, store: Store, factory: StoreFactory, clock: FakeClock) -> None:
        other = factory.make(clock)
        put(store, "a")
        held = claim(other)
        assert ids(held) == ["a"]
        assert settle(store, held) == [True], "a receipt is good on every connection"
        assert stats(other).total == 0
        other.close()

    def test_a_put_wakes_who_waits_on_another_connection(self, store: Store, factory: StoreFactory, clock: FakeClock) -> None:
        other = factory.make(clock)
        waiter = waiting_claim(other)
        put(store, "a")
        assert ids(waiter.result("a claim that waited for a put by another connection")) == ["a"]
        other.close()

    def test_several_may_open_a_new_store_at_once(self, factory: StoreFactory, clock: FakeClock) -> None:
        opening = [Doing(lambda: factory.make(clock)) for _ in range(4)]
        stores = [one.result("opening a new store") for one in opening]
        for number, store in enumerate(stores):
            put(store, str(number))
        assert len(drain(stores[0])) == 4
        for store in stores:
            store.close()

    def test_a_writer_killed_at_any_moment_loses_nothing_and_leaves_nothing_half(self, factory: StoreFactory) -> None:
        kept = Kept()
        seed = random.randrange(2**32)
        chance = random.Random(seed)
        for round_ in range(self.kills):
            kept.add(acks_until_killed(factory, round_, after=chance.randint(1, 100)))
            store = factory.make(FakeClock())
            problems = kept.problems(store)
            store.close()
            assert problems == [], f"seed {seed}, after {round_ + 1} kills: {problems}"


class Kept:
    """What writers were told before they were killed, and what must therefore be there."""

    def __init__(self) -> None:
        self.put: set[str] = set()
        self.ending: set[str] = set()
        self.done: set[str] = set()
        self.pair: int = -1

    def add(self, acks: list[Ack]) -> None:
        for what, name in acks:
            if what == "pair":
                self.pair = max(self.pair, int(name))
            else:
                {"put": self.put, "ending": self.ending, "done": self.done}[what].add(name)

    def problems(self, store: Store) -> list[str]:
        """What is not as it must be, a sentence each."""
        there = {*pages(store, "ready", 1_000), *pages(store, "leased", 1_000)}
        found = [f"{name} was put and is lost" for name in self.put - there - self.ending]
        found += [f"{name} is done and there again" for name in self.done & there]
        counted = store.execute(Count(JOBS))
        if counted.total != len(there):
            found.append(f"{counted.total} messages are counted, and {len(there)} are there")
        pair = read(store, dict="left") | {f"right {key}": value for key, value in read(store, dict="right").items()}
        if len(set(pair.values())) > 1 or pair.get("n", -1) < self.pair:
            found.append(f"half of a step: {pair}, and {self.pair} was acknowledged")
        if store.execute(Claim("probe")).messages:
            found.append("a queue that nobody wrote to has messages")
        return found


def acks_until_killed(factory: StoreFactory, round_: int, after: int) -> list[Ack]:
    """Let a writer write until it has told us so often, kill it wherever it is, and answer all it told."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    writer = context.Process(target=write_until_killed, args=(factory, theirs, round_), daemon=True)
    writer.start()
    theirs.close()
    acks: list[Ack] = []
    try:
        while len(acks) < after:
            acks.append(ours.recv())
        os.kill(writer.pid or 0, signal.SIGKILL)
        while True:
            acks.append(ours.recv())
    except EOFError:
        pass
    writer.join()
    assert len(acks) >= after, f"the writer ended by itself after {len(acks)} acknowledgements, exit code {writer.exitcode}"
    return acks


def write_until_killed(factory: StoreFactory, acks: Connection, round_: int) -> None:
    """Put, write and settle for ever, and tell what was acknowledged."""
    store = factory.make(FakeClock())
    number = 0
    while True:
        name = f"{round_}-{number}"
        store.execute(Put(JOBS, [item(name)]))
        acks.send(("put", name))
        n = raw(round_ * 1_000_000 + number)
        store.execute(Together([Write("left", [Change("n", value=n)]), Write("right", [Change("n", value=n)])]))
        acks.send(("pair", str(round_ * 1_000_000 + number)))
        if number % 3 == 0:
            (held,) = claim(store)
            acks.send(("ending", held.id))
            settle(store, [held])
            acks.send(("done", held.id))
        number += 1
