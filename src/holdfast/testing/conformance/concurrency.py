"""Many threads on one store: nobody holds what another holds, and nothing is lost."""

import random
from collections.abc import Callable

from msgspec import json

from holdfast.commands import Change, Changes, Read, Together, Write
from holdfast.commands.events import OLDEST
from holdfast.errors import HoldfastError
from holdfast.records import Lease, Message
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import DICT, acquire, claim, drain, put, raw, read, release, settle, stats, write
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.threads import Doing, together
from holdfast.testing.histories import Delivery, leased_violations

THREADS = 8


class ConcurrencyConformance(Conformance):
    """As if every command were alone."""

    def test_eight_claimers_never_hold_one_message_twice(self, store: Store) -> None:
        put(store, *[str(number) for number in range(400)])
        history = [delivery for log in together(*[worker(store, seed) for seed in range(THREADS)]) for delivery in log]
        assert leased_violations(history, put={str(number) for number in range(400)}) == []
        assert stats(store).total == 0

    def test_expiries_in_between_hand_nothing_to_two_valid_holders(self, store: Store, clock: FakeClock) -> None:
        put(store, *[str(number) for number in range(200)])
        workers = [Doing(forgetful_worker(store, seed)) for seed in range(THREADS)]
        history = [delivery for one in workers for delivery in one.result("a worker", nudge=lambda: clock.advance(1))]
        assert leased_violations(history, put={str(number) for number in range(200)}) == []
        assert stats(store).total == 0

    def test_tokens_of_all_threads_are_apart(self, store: Store) -> None:
        def act(name: int) -> Callable[[], list[int]]:
            def ask() -> list[int]:
                tokens = []
                for number in range(20):
                    put(store, f"{name}-{number}", queue=str(name))
                    tokens.append(claim(store, queue=str(name))[0].token)
                    tokens.append(acquire(store, f"{name}-{number}", lease_id="x").lease.token)
                return tokens

            return ask

        found = together(*[act(name) for name in range(THREADS)])
        assert all(tokens == sorted(tokens) for tokens in found), "each thread's tokens must grow"
        assert len({token for tokens in found for token in tokens}) == THREADS * 40, "a token was given out twice"

    def test_what_all_threads_put_is_all_there_and_each_ones_in_order(self, store: Store) -> None:
        def act(name: int) -> Callable[[], object]:
            return lambda: [put(store, f"{name}-{number:03}") for number in range(50)]

        together(*[act(name) for name in range(THREADS)])
        found = drain(store)
        assert len(found) == len(set(found)) == THREADS * 50
        for name in range(THREADS):
            mine = [message_id for message_id in found if message_id.startswith(f"{name}-")]
            assert mine == sorted(mine), "messages of one producer changed their order"

    def test_increments_of_all_threads_add_up(self, store: Store) -> None:
        def act() -> None:
            for _ in range(50):
                write(store, "n", do="increment", by=1)

        together(*[act] * THREADS)
        assert read(store) == {"n": THREADS * 50}

    def test_compare_and_set_loses_no_update(self, store: Store) -> None:
        write(store, "n", 0)

        def act() -> None:
            done = 0
            while done < 10:
                before = read(store)["n"]
                done += write(store, "n", before + 1, expect="value", expected=raw(before)).written

        together(*[act] * THREADS)
        assert read(store) == {"n": THREADS * 10}

    def test_of_all_who_ask_one_is_granted_a_lease(self, store: Store) -> None:
        for round_ in range(10):
            granted = together(*[lambda name=name: told_lease(store, str(name)) for name in range(THREADS)])
            assert len({lease.token for lease in granted}) == 1, f"round {round_}: {granted}"
            (winner,) = [lease for name, lease in enumerate(granted) if lease.lease_id == str(name)]
            assert release(store, winner)

    def test_a_step_of_two_writes_is_never_seen_half(self, store: Store) -> None:
        store.execute(Write(DICT, [Change("a", value=raw(0)), Change("b", value=raw(0))]))

        def act() -> None:
            for number in range(40):
                write_both = [Write(DICT, [Change("a", value=raw(number))]), Write(DICT, [Change("b", value=raw(number))])]
                store.execute(Together(write_both))

        writers = [Doing(act), Doing(act)]
        while not all(writer.is_over for writer in writers):
            seen = read(store)
            assert seen["a"] == seen["b"], f"a reader saw half of a step: {seen}"
        for writer in writers:
            writer.result("a writer")

    def test_a_step_of_two_reads_is_of_one_moment(self, store: Store) -> None:
        def write_both(number: int) -> list[object]:
            return store.execute(Together([Write(name, [Change("n", value=raw(number))]) for name in ("left", "right")]))

        write_both(0)
        writer = Doing(lambda: [write_both(number) for number in range(100)])
        while not writer.is_over:
            left, right = store.execute(Together([Read("left", limit=10), Read("right", limit=10)]))
            assert left.entries[0].value == right.entries[0].value, "a reader saw half of a step"
        writer.result("a writer")

    def test_a_watcher_sees_every_event_once_and_in_order(self, store: Store) -> None:
        def act(name: int) -> Callable[[], object]:
            return lambda: [write(store, f"{name}", number) for number in range(50)]

        def watch() -> list[tuple[str, int]]:
            seen: list[tuple[str, int]] = []
            after = OLDEST
            while len(seen) < 200:
                page = store.execute(Changes(f"dict:{DICT}", after, 7))
                seen += [(data["key"], data["value"]) for data in (json.decode(event.data) for event in page.events)]
                after = page.upto
            return seen

        watcher = Doing(watch)
        together(*[act(name) for name in range(4)])
        seen = watcher.result("a watcher")
        assert sorted(seen) == sorted((str(name), number) for name in range(4) for number in range(50))
        for name in range(4):
            mine = [number for key, number in seen if key == str(name)]
            assert mine == sorted(mine), "events of one key are out of order"

    def test_a_command_that_fails_among_others_harms_only_itself(self, store: Store) -> None:
        write(store, "text", "no number")

        def good() -> int:
            return sum(write(store, "n", do="increment", by=1).written for _ in range(50))

        def bad() -> int:
            refused = 0
            for _ in range(50):
                try:
                    write(store, "text", do="increment", by=1)
                except HoldfastError:
                    refused += 1
            return refused

        assert together(good, bad, good, bad) == [50, 50, 50, 50]
        assert read(store) == {"n": 100, "text": "no number"}


def told_lease(store: Store, lease_id: str) -> Lease:
    """The lease in force, once it is known: a store that is slow to commit may answer that it is somebody's, and not whose."""
    lease = acquire(store, lease_id=lease_id).lease
    for _ in range(100):
        if lease.token:
            break
        lease = acquire(store, lease_id=lease_id).lease
    return lease


def worker(store: Store, seed: int) -> Callable[[], list[Delivery]]:
    """Claims, and settles in one way or another, until nothing is left."""
    chance = random.Random(seed)

    def work() -> list[Delivery]:
        log: list[Delivery] = []
        while held := claim(store, chance.randint(1, 3), holder=str(seed), lease_s=None):
            for message in held:
                to = chance.choice(["done", "done", "ready"])
                log.append(delivered(message, to, settle(store, [message], to=to)[0]))
        return log

    return work


def forgetful_worker(store: Store, seed: int) -> Callable[[], list[Delivery]]:
    """Claims with short leases, and sometimes settles too late or not at all, until nothing is left."""
    chance = random.Random(seed)

    def work() -> list[Delivery]:
        log: list[Delivery] = []
        kept: list[Message] = []
        while stats(store).total:
            kept += claim(store, chance.randint(1, 5), holder=str(seed), lease_s=float(chance.randint(1, 3)))
            chance.shuffle(kept)
            while kept and chance.random() < 0.7:
                message = kept.pop()
                log.append(delivered(message, "done", settle(store, [message])[0]))
            while len(kept) > 20:
                log.append(delivered(kept.pop(), "forgotten", accepted=False))
        return log + [delivered(message, "forgotten", accepted=False) for message in kept]

    return work


def delivered(message: Message, ending: str, accepted: bool) -> Delivery:
    return Delivery(message.id, message.holder, message.token, message.since, message.until, ending, accepted)
