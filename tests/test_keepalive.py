"""The keepalive: one thread, few commands, and news of every loss."""

import gc
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import Acquire, Claim, Extend, Item, LeaseName, Look, Put, Release, Renew
from holdfast.errors import ClaimLost, Closed, LeaseLost, StoreUnavailable
from holdfast.holding.hold import Hold
from holdfast.holding.keepalive import Keepalive
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.telemetry.meters import LATE_RENEWALS, LOST
from holdfast.testing.clock import FakeClock
from tests.meters import counted
from tests.runners import Runner


class Recording:
    """A store that remembers what the keepalive asks, and may refuse it or keep it waiting."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.clock = store.waiters.clock
        self.limits = store.limits
        self.asked: list[Any] = []
        self.fails = False
        self.is_busy = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.timeouts: list[float] = []
        self.is_closed = False

    def for_renewals(self) -> "Recording":
        return self

    def close(self) -> None:
        self.is_closed = True

    def execute(self, command: Any, timeout_s: float) -> Any:
        self.timeouts.append(timeout_s)
        self.is_busy.set()
        assert self.may_go_on.wait(60)
        self.asked.append(command)
        if self.fails:
            raise StoreUnavailable("The store is away.")
        return self.store.execute(command)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Iterator[Recording]:
    with closing(MemoryStore(clock=clock)) as memory:
        yield Recording(memory)


@pytest.fixture
def keepalive(store: Recording) -> Iterator[Keepalive]:
    with closing(Keepalive(store, store.clock)) as made:
        yield made


def leased(store: Recording, keepalive: Keepalive, name: str = "a", lease_s: float = 30.0, **how: Any) -> Hold:
    store.store.execute(Acquire(None, name, "w", f"lease-{name}", lease_s))
    return Hold(LeaseName(None, name, f"lease-{name}"), lease_s, keepalive.now(), keepalive.now, **how)


def claimed(store: Recording, keepalive: Keepalive, name: str, lease_s: float = 30.0) -> Hold:
    store.store.execute(Put("jobs", [Item(name, Raw(b"1"))]))
    (message,) = store.store.execute(Claim("jobs", "w", lease_s)).messages
    return Hold(message.receipt, lease_s, keepalive.now(), keepalive.now)


def until(condition: Callable[[], bool]) -> None:
    Runner().until(condition)


def is_held(store: Recording, name: str) -> bool:
    return store.store.execute(Look(None, [name])).leases[0] is not None


def test_many_holds_are_renewed_by_one_command_of_each_kind(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    holds = [leased(store, keepalive, f"lease {n}") for n in range(100)] + [claimed(store, keepalive, f"job {n}") for n in range(50)]
    for hold in holds:
        keepalive.add(hold)
    clock.advance(10)
    until(lambda: all(hold.renew_at > keepalive.now() for hold in holds))
    assert sorted(
        (type(command).__name__, len(getattr(command, "names", getattr(command, "receipts", ())))) for command in store.asked
    ) == [
        ("Extend", 50),
        ("Renew", 100),
    ]


def test_each_length_is_renewed_by_itself(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    short, long = leased(store, keepalive, "short", 30.0), leased(store, keepalive, "long", 60.0)
    keepalive.add(short)
    keepalive.add(long)
    clock.advance(20)
    until(lambda: len(store.asked) == 2)
    assert sorted(command.lease_s for command in store.asked) == [30.0, 60.0]


def test_what_was_taken_at_different_moments_goes_together_in_time(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    keepalive.add(leased(store, keepalive, "first"))
    clock.advance(4)
    keepalive.add(leased(store, keepalive, "second"))
    clock.advance(6)
    until(lambda: len(store.asked) == 1)
    assert [name.key for name in store.asked[0].names] == ["first", "second"]


def test_a_batch_is_no_larger_than_the_store_takes(clock: FakeClock) -> None:
    from holdfast.codec import Limits

    with closing(MemoryStore(clock=clock, limits=Limits(batch_items=2))) as memory:
        store = Recording(memory)
        with closing(Keepalive(store, store.clock)) as keepalive:
            holds = [leased(store, keepalive, f"lease {n}") for n in range(5)]
            for hold in holds:
                keepalive.add(hold)
            clock.advance(10)
            until(lambda: all(hold.renew_at > keepalive.now() for hold in holds))
    assert [len(command.names) for command in store.asked] == [2, 2, 1]


def test_a_hold_is_renewed_as_long_as_it_is_there(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    hold = leased(store, keepalive)
    keepalive.add(hold)
    for _ in range(20):
        clock.advance(10)
        until(lambda: hold.renew_at > keepalive.now())
    assert not hold.lost
    assert is_held(store, "a")
    keepalive.drop(hold)
    clock.advance(30)
    assert not is_held(store, "a")


def test_the_interval_may_be_chosen(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    hold = leased(store, keepalive, renew_interval_s=1)
    keepalive.add(hold)
    clock.advance(1)
    until(lambda: len(store.asked) == 1)
    assert hold.renew_at == keepalive.now() + 1


def test_who_loses_a_lease_in_the_store_is_told(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    lost, kept = leased(store, keepalive, "lost"), leased(store, keepalive, "kept")
    told: list[str] = []
    before = counted(LOST)
    lost.on_lost(lambda: told.append("lost"))
    kept.on_lost(lambda: told.append("kept"))
    keepalive.add(lost)
    keepalive.add(kept)
    store.store.execute(Release([LeaseName(None, "lost", "lease-lost")]))
    clock.advance(10)
    until(lambda: bool(told))
    assert told == ["lost"]
    assert (lost.lost, kept.lost, len(keepalive)) == (True, False, 1)
    assert counted(LOST) == before + 1
    with pytest.raises(LeaseLost, match="the store reports"):
        lost.check()


def test_who_loses_a_claim_is_told(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    from holdfast.commands import Clear

    hold = claimed(store, keepalive, "job")
    keepalive.add(hold)
    store.store.execute(Clear("queue", "jobs"))
    clock.advance(10)
    until(lambda: hold.lost)
    with pytest.raises(ClaimLost, match="message job of queue 'jobs'") as lost:
        hold.check()
    assert lost.value.lost == [hold.name]


def test_a_renewal_that_fails_is_tried_again(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    hold, before = leased(store, keepalive), (counted(LATE_RENEWALS), counted(LOST))
    keepalive.add(hold)
    store.fails = True
    clock.advance(10)
    until(lambda: hold.renew_at > keepalive.now())
    assert not hold.lost
    assert (counted(LATE_RENEWALS), counted(LOST)) == (before[0] + 1, before[1])
    store.fails = False
    clock.advance(2.5)
    until(lambda: hold.renew_at == keepalive.now() + 10)
    assert len(store.asked) == 2


def test_who_cannot_renew_in_time_is_lost_before_the_lease_ends(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    hold = leased(store, keepalive)
    told = threading.Event()
    hold.on_lost(told.set)
    keepalive.add(hold)
    store.fails = True
    clock.advance(29)
    assert told.wait(60)
    assert hold.lost
    assert is_held(store, "a")
    with pytest.raises(LeaseLost, match="could not be renewed in time"):
        hold.check()


def test_a_hold_that_is_not_renewed_is_told_of_its_end(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    hold = leased(store, keepalive, auto_renew=False)
    told = threading.Event()
    hold.on_lost(told.set)
    keepalive.add(hold)
    clock.advance(29)
    assert told.wait(60)
    assert store.asked == []


def test_a_body_that_hangs_is_not_renewed_for_ever(
    store: Recording, keepalive: Keepalive, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    hold = leased(store, keepalive, max_hold_s=25)
    told = threading.Event()
    hold.on_lost(told.set)
    keepalive.add(hold)
    with caplog.at_level(logging.ERROR, "holdfast"):
        for _ in range(2):
            clock.advance(10)
            until(lambda: hold.renew_at > keepalive.now())
        clock.advance(5)
        until(lambda: not hold.auto_renew)
        assert not hold.lost
        clock.advance(24)
        assert told.wait(60)
    assert "max_hold_s=25" in caplog.text
    assert "test_a_body_that_hangs_is_not_renewed_for_ever" in caplog.text
    assert len(store.asked) == 2


def test_dropping_never_waits_for_a_renewal_under_way(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    hold = leased(store, keepalive)
    told = threading.Event()
    hold.on_lost(told.set)
    keepalive.add(hold)
    store.may_go_on.clear()
    clock.advance(10)
    assert store.is_busy.wait(60)
    store.store.execute(Release([LeaseName(None, "a", "lease-a")]))
    keepalive.drop(hold)
    store.may_go_on.set()
    keepalive.close()
    assert not told.is_set()


def test_a_callback_that_fails_stops_nothing(store: Recording, keepalive: Keepalive, clock: FakeClock) -> None:
    first, second = leased(store, keepalive, "first", auto_renew=False), leased(store, keepalive, "second")
    told = threading.Event()
    first.on_lost(told.set)
    first.on_lost(lambda: 1 // 0)
    keepalive.add(first)
    keepalive.add(second)
    for _ in range(3):
        clock.advance(10)
        until(lambda: second.renew_at > keepalive.now())
    assert told.wait(60)
    assert not second.lost


def test_who_asks_late_is_told_at_once(store: Recording, keepalive: Keepalive) -> None:
    hold = leased(store, keepalive)
    hold.tell_lost("for a test")
    told: list[str] = []
    hold.on_lost(lambda: told.append("told"))
    assert told == ["told"]


def test_closing_tells_who_still_holds_something(store: Recording, keepalive: Keepalive) -> None:
    hold = leased(store, keepalive)
    keepalive.add(hold)
    keepalive.close()
    with pytest.raises(LeaseLost, match="client was closed"):
        hold.check()
    with pytest.raises(Closed):
        keepalive.add(hold)


def test_there_is_one_thread_and_none_before_the_first_hold(store: Recording, keepalive: Keepalive) -> None:
    def threads() -> int:
        return sum(thread.name == "holdfast-keepalive" for thread in threading.enumerate())

    before = threads()
    for name in "abc":
        keepalive.add(leased(store, keepalive, name))
    assert threads() == before + 1
    keepalive.close()
    assert threads() == before


def test_the_thread_ends_when_nothing_was_held_for_a_while_and_another_begins(
    store: Recording, keepalive: Keepalive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.holding.keepalive.LINGER_S", 0.01)
    for name in "ab":
        hold = leased(store, keepalive, name)
        store.is_closed = False
        keepalive.add(hold)
        assert keepalive._thread is not None
        keepalive.drop(hold)
        until(lambda: keepalive._thread is None and store.is_closed)


def test_a_client_that_nobody_has_any_more_is_collected_with_its_keepalive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.holding.keepalive.LINGER_S", 0.01)
    store = Recording(MemoryStore())
    keepalive = Keepalive(store, store.clock)
    hold = leased(store, keepalive)
    keepalive.add(hold)
    keepalive.drop(hold)
    seen = weakref.ref(keepalive)
    del keepalive, hold
    until(lambda: gc.collect() >= 0 and seen() is None)


def test_a_lease_renewed_by_hand_for_another_time_is_renewed_at_once_for_that(
    store: Recording, keepalive: Keepalive, clock: FakeClock
) -> None:
    hold = leased(store, keepalive, lease_s=30.0)
    keepalive.add(hold)
    store.store.execute(Renew([LeaseName(None, "a", "lease-a")], 300.0))
    hold.renewed(keepalive.now(), 300.0)
    until(lambda: hold.renew_at == keepalive.now() + 100)
    assert [command.lease_s for command in store.asked] == [300.0]
    assert hold.trusted_for_s == 299


def test_a_late_renewal_for_a_shorter_time_is_not_trusted_for_the_longer_one(
    store: Recording, keepalive: Keepalive, clock: FakeClock
) -> None:
    hold = leased(store, keepalive, lease_s=30.0)
    keepalive.add(hold)
    store.may_go_on.clear()
    clock.advance(10)
    assert store.is_busy.wait(60)
    hold.renewed(keepalive.now(), 300.0)
    assert hold.trusted_for_s == 29
    store.may_go_on.set()
    until(lambda: hold.trusted_for_s == 299)
    assert [command.lease_s for command in store.asked] == [30.0, 300.0]


def test_leases_are_known_by_name_as_long_as_anybody_has_them(store: Recording, keepalive: Keepalive) -> None:
    kept = leased(store, keepalive, "kept")
    keepalive.remember(LeaseName(None, "kept", "lease-kept"), kept)
    for n in range(1_000):
        keepalive.remember(LeaseName(None, "gone", str(n)), leased(store, keepalive, "gone"))
    assert keepalive.recall(LeaseName(None, "kept", "lease-kept")) is kept
    assert keepalive.recall(LeaseName(None, "gone", "0")) is None
    assert len(keepalive._leases) < 200


def test_on_a_real_clock_renewals_come_by_themselves() -> None:
    with closing(MemoryStore()) as memory:
        store = Recording(memory)
        with closing(Keepalive(store, store.clock)) as keepalive:
            hold = leased(store, keepalive, lease_s=60.0, renew_interval_s=0.001)
            keepalive.add(hold)
            until(lambda: len(store.asked) > 2)
            assert {type(command) for command in store.asked} <= {Renew, Extend}


def test_a_try_leaves_time_for_others_within_the_shortest_lease_whoevers_turn_it_is() -> None:
    with closing(MemoryStore()) as memory:
        store = Recording(memory)
        with closing(Keepalive(store, store.clock)) as keepalive:
            keepalive.add(leased(store, keepalive, "short", lease_s=3.0))
            keepalive.add(leased(store, keepalive, "long", lease_s=60.0, renew_interval_s=0.001))
            until(lambda: len(store.asked) > 2)
    assert all(command.lease_s == 60.0 for command in store.asked[:2])
    assert all(0 < 3 * timeout_s <= 3.0 for timeout_s in store.timeouts)


def test_what_renewals_went_through_is_closed_with_the_thread(store: Recording, keepalive: Keepalive) -> None:
    keepalive.add(leased(store, keepalive))
    keepalive.close()
    assert store.is_closed


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_holds_nothing_and_may_hold_its_own(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "store")) as store, closing(Keepalive(store)) as keepalive:
        store.execute(Acquire(None, "a", "parent", "parents", 600.0))
        hold = Hold(LeaseName(None, "a", "parents"), 600.0, keepalive.now(), keepalive.now)
        told: list[str] = []
        hold.on_lost(lambda: told.append("told"))
        keepalive.add(hold)
        with keepalive._changed:
            child = os.fork()
            if child == 0:
                os._exit(_in_child(store, keepalive, hold))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not hold.lost
        assert told == []
        assert store.execute(Look(None, ["a"])).leases[0] is not None


def _in_child(store: SqliteStore, keepalive: Keepalive, inherited: Hold) -> int:
    try:
        assert inherited.lost
        assert inherited.is_inherited
        assert len(keepalive) == 0
        store.execute(Acquire(None, "b", "child", "childs", 60.0))
        own = Hold(LeaseName(None, "b", "childs"), 60.0, keepalive.now(), keepalive.now, renew_interval_s=0.001)
        first = own.renew_at
        keepalive.add(own)
        until(lambda: own.renew_at > first)
        assert not own.lost
    except BaseException:  # noqa: BLE001 - the parent looks at the code
        return 1
    return 0
