"""Faults of design that were seen in prototypes, each with its test."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from msgspec import Raw

from holdfast._async.flows import claiming as claiming_async
from holdfast._sync.flows import claiming
from holdfast.clock import Host
from holdfast.commands import Acquire, Claim, Count, Extend, Item, LeaseName, Put, Renew
from holdfast.commands.claim_line import SWEEP, Claimed
from holdfast.errors import StoreUnavailable
from holdfast.stores.async_files import ThreadedStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import FakeClock
from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED, ack, claim, put, waiting

HOUR_S = 3_600.0
SECOND_US = 1_000_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "jobs.db", durability="process", clock=clock)
    yield store
    store.close()


# A clock set back before a reboot


class Machine:
    """The clocks of a machine that a test boots again."""

    def __init__(self) -> None:
        self.boot, self.boot_us, self.wall_us = 1, 50 * SECOND_US, 1_700_000_000 * SECOND_US

    def pass_s(self, seconds: float) -> None:
        self.boot_us += round(seconds * SECOND_US)
        self.wall_us += round(seconds * SECOND_US)

    def reboot(self, wall_moved_s: float) -> None:
        self.boot, self.boot_us = self.boot + 1, 5 * SECOND_US
        self.wall_us += round(wall_moved_s * SECOND_US)

    def open(self, path: Path) -> SqliteStore:
        return SqliteStore(path, host=Host(lambda: self.boot_us, lambda: f"boot {self.boot}", lambda: self.wall_us))


def test_time_never_goes_back_after_a_clock_set_back_and_a_reboot(tmp_path: Path) -> None:
    machine = Machine()
    with closing(machine.open(tmp_path / "jobs.db")) as store:
        put(store, "a")
        before = store.clock.now_us()
    machine.reboot(wall_moved_s=-HOUR_S)
    with closing(machine.open(tmp_path / "jobs.db")) as store:
        assert store.clock.now_us() > before
        put(store, "b")
        assert [message.id for message in claim(store, limit=2)] == ["a", "b"]


def test_a_lease_outlives_a_clock_set_back_and_a_reboot_by_its_rest_and_no_more(tmp_path: Path) -> None:
    machine = Machine()
    with closing(machine.open(tmp_path / "jobs.db")) as store:
        put(store, "a")
        claim(store, lease_s=60.0)
    machine.reboot(wall_moved_s=-HOUR_S)
    with closing(machine.open(tmp_path / "jobs.db")) as store:
        machine.pass_s(59.0)
        assert claim(store) == []
        machine.pass_s(2.0)
        assert [message.id for message in claim(store)] == ["a"]


def test_a_lease_ends_during_a_reboot_that_takes_longer(tmp_path: Path) -> None:
    machine = Machine()
    with closing(machine.open(tmp_path / "jobs.db")) as store:
        put(store, "a")
        claim(store, lease_s=60.0)
    machine.reboot(wall_moved_s=61.0)
    with closing(machine.open(tmp_path / "jobs.db")) as store:
        assert [message.id for message in claim(store)] == ["a"]


def test_renewals_count_as_time_that_has_passed(tmp_path: Path) -> None:
    machine = Machine()
    with closing(machine.open(tmp_path / "jobs.db")) as store:
        put(store, "a")
        receipt = claim(store, lease_s=60.0)[0].receipt
        store.execute(Acquire(None, "leader", "me", "lease 1", 60.0))
        for _ in range(100):
            machine.pass_s(50.0)
            store.execute(Extend([receipt], 60.0))
            store.execute(Renew([LeaseName(None, "leader", "lease 1")], 60.0))
    machine.reboot(wall_moved_s=-2 * HOUR_S)
    with closing(machine.open(tmp_path / "jobs.db")) as store:
        machine.pass_s(62.0)
        assert [message.id for message in claim(store)] == ["a"]
        assert store.execute(Acquire(None, "leader", "you", "lease 2", 60.0)).lease.holder == "you"


def test_control_without_a_note_of_renewals_a_lease_would_outlive_them_by_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores.sqlite.transaction.SqliteTransaction.note_time", lambda _: None)
    with pytest.raises(AssertionError):
        test_renewals_count_as_time_that_has_passed(tmp_path)


def test_a_second_kernel_is_refused_while_the_first_has_the_file(tmp_path: Path) -> None:
    with Program(OPENED, tmp_path / "jobs.db") as other:
        other.ask("put('a')")
        machine = Machine()
        with pytest.raises(StoreUnavailable, match="another machine"):
            machine.open(tmp_path / "jobs.db")
        assert other.ask("put('b')") == "[True]"


# Much at one moment


def test_a_hundred_thousand_messages_due_at_one_moment_come_in_order_and_once(store: SqliteStore, clock: FakeClock) -> None:
    for batch in range(10):
        store.execute(Put("jobs", [Item(f"{batch * 10_000 + n:06}", Raw(b"1"), delay_s=60.0) for n in range(10_000)]))
    assert store.execute(Claim("jobs")).due_in_s == 60.0
    clock.advance(60.0)
    claimed = [message.id for _ in range(10) for message in claim(store, limit=10_000)]
    assert claimed == [f"{n:06}" for n in range(100_000)]


# More leases ended than one claim looks after

MANY = 2 * SWEEP + 50


def expire_many(store: SqliteStore, clock: FakeClock, max_attempts: int | None = None) -> list[str]:
    names = [f"{n:04}" for n in range(MANY)]
    store.execute(Put("jobs", [Item(name, Raw(b"1"), max_attempts=max_attempts) for name in names]))
    claim(store, limit=MANY, lease_s=1.0)
    clock.advance(2.0)
    return names


def test_more_ended_leases_than_a_claim_looks_after_all_come_back_in_order(store: SqliteStore, clock: FakeClock) -> None:
    names = expire_many(store, clock)
    assert [message.id for _ in range(MANY) for message in claim(store)] == names
    assert claim(store) == []


def test_a_message_behind_many_that_are_out_of_attempts_is_found_at_once(store: SqliteStore, clock: FakeClock) -> None:
    expire_many(store, clock, max_attempts=1)
    put(store, "alive")
    assert [message.id for message in claiming.claim_now(store, Claim("jobs", lease_s=60.0))] == ["alive"]


def test_many_that_are_all_out_of_attempts_are_buried_by_one_try(store: SqliteStore, clock: FakeClock) -> None:
    expire_many(store, clock, max_attempts=1)
    assert store.execute(Claim("jobs", lease_s=60.0)).due_in_s == 0.0
    assert claiming.claim_now(store, Claim("jobs", lease_s=60.0)) == []
    assert store.execute(Count("jobs")).dead == MANY


def test_a_claim_that_waits_does_not_spin_when_all_are_buried(store: SqliteStore, clock: FakeClock) -> None:
    expire_many(store, clock, max_attempts=1)
    assert claiming.claim(store, Claim("jobs", lease_s=60.0), timeout_s=0.01) == []
    assert store.execute(Count("jobs")).dead == MANY


# A wake-up for a waiter that was just cancelled


@pytest.mark.anyio
async def test_a_wake_up_for_a_waiter_that_was_just_cancelled_goes_to_the_next(store: SqliteStore) -> None:
    tasks_store = ThreadedStore(store)
    command = Claim("jobs", lease_s=60.0)
    first, second = (asyncio.create_task(claiming_async.claim(tasks_store, command, 60.0, poll_s=1_000.0)) for _ in range(2))
    while store.waiters.waiting("queue:jobs") < 2:  # noqa: ASYNC110 - the waiters have no event for tests
        await asyncio.sleep(0)
    put(store, "a")  # On the loop's own thread: the first is woken and cannot have run.
    first.cancel()
    assert [message.id for message in await second] == ["a"]
    with pytest.raises(asyncio.CancelledError):
        await first
    assert store.waiters.topics() == []
    await tasks_store.aclose()


async def give_back(store: ThreadedStore, claimed: Claimed, *, take: bool) -> None:
    for undo in Claim("jobs", take=take).undo(claimed):
        await store.execute(undo)


@pytest.mark.anyio
@pytest.mark.parametrize("take", [False, True], ids=["claim", "take"])
async def test_a_claim_cancelled_at_any_stage_gives_the_message_back(store: SqliteStore, *, take: bool) -> None:
    tasks_store = ThreadedStore(store)
    put(store, "a")
    for turns_of_the_loop in range(60):
        under_way = asyncio.create_task(tasks_store.execute(Claim("jobs", lease_s=60.0, take=take)))
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        under_way.cancel()
        with suppress(asyncio.CancelledError):
            await give_back(tasks_store, await under_way, take=take)
    # Everything asked before this was answered is done by now.
    answer = await tasks_store.execute(Claim("jobs", lease_s=60.0, take=take))
    assert [(message.id, message.failures) for message in answer.messages] == [("a", 0)]
    await tasks_store.aclose()


def test_a_claim_cancelled_by_the_end_of_its_loop_gives_the_message_back(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        tasks_store = ThreadedStore(store)

        async def leave_a_claim_behind() -> None:
            asyncio.create_task(tasks_store.execute(Claim("jobs", lease_s=60.0)))  # noqa: RUF006 - that it is forgotten is the point
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        put(store, "a")
        asyncio.run(leave_a_claim_behind())
        tasks_store._writer.close()  # Waits until its thread has done everything.
        assert waiting(store) == ["a"]


@pytest.mark.anyio
async def test_tasks_asking_while_the_store_closes_are_all_answered(tmp_path: Path) -> None:
    tasks_store = ThreadedStore(SqliteStore(tmp_path / "jobs.db", durability="process"))
    puts = [asyncio.create_task(tasks_store.execute(Put("jobs", [Item(str(n), Raw(b"1"))]))) for n in range(200)]
    closing_it = asyncio.create_task(tasks_store.aclose())
    more = [asyncio.create_task(tasks_store.execute(Put("jobs", [Item(f"more {n}", Raw(b"1"))]))) for n in range(200)]
    answers = await asyncio.gather(*puts, *more, return_exceptions=True)
    await closing_it
    assert {type(answer).__name__ for answer in answers} <= {"Puts", "Closed"}


# A folder whose path is too long for a socket

WAITING = (
    OPENED
    + """
from holdfast._sync.flows.claiming import claim as claim_with_patience

answers = []

def claim_soon():
    # Without a poll: only a wake-up can end the wait in time.
    answers.extend(claim_with_patience(store, Claim("jobs", lease_s=60.0), timeout_s=100.0, poll_s=1000.0))

def wait_in_a_thread():
    thread = threading.Thread(target=claim_soon)
    thread.start()
    while not store.waiters.waiting("queue:jobs"):
        pass
    return thread
"""
)


@pytest.mark.parametrize("folder", ["short", "x" * 60, "x" * 200], ids=["short", "long", "very long"])
def test_a_claim_that_waits_in_another_process_is_woken_however_long_the_path(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    path = tmp_path / folder / "jobs.db"
    with ExitStack() as stack:
        store = stack.enter_context(closing(SqliteStore(path)))
        store.execute(Count("jobs"))
        other = stack.enter_context(Program(WAITING, path))
        other.ask("(thread := wait_in_a_thread()) and None")
        put(store, "a")
        assert other.ask("[thread.join(), [message.id for message in answers]][1]") == "['a']"


# A worker stopped and continued


def test_a_worker_whose_lease_ended_cannot_settle(store: SqliteStore, clock: FakeClock) -> None:
    put(store, "a")
    stale = claim(store, lease_s=1.0)
    clock.advance(2.0)
    assert ack(store, stale) == [False]
    fresh = claim(store)
    assert ack(store, stale) == [False]
    assert fresh[0].token > stale[0].token
    assert ack(store, fresh) == [True]
