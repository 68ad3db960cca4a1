"""Commits that threads share: one for many, the right answer for each, and nobody left behind by a failure or a Ctrl-C."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import pytest
from msgspec import Raw

from holdfast.commands import Claim, Command, Configure, Item, Put, Transaction
from holdfast.commands.names import Renamer
from holdfast.commands.topics import queue_topic
from holdfast.commands.transaction import Draft
from holdfast.errors import Closed, OutcomeUnknown, QueueFull, StoreUnavailable
from holdfast.stores.group_commit import Job
from holdfast.stores.sqlite.store import SqliteStore
from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED, put, waiting


class Failing(Command[None], frozen=True):
    """Writes something, and then fails as only a fault of ours or of the disk would."""

    def named(self, names: Renamer) -> Self:
        del names
        return self

    def check(self, tx: Transaction) -> None:
        tx.latest()

    def write(self, tx: Transaction, plan: None) -> None:
        del plan
        tx.append([Draft(queue_topic("jobs"), "put", {"ids": ["half"]})])
        raise RuntimeError("in the middle")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "jobs.db")
    yield store
    store.close()


def count_commits(store: SqliteStore) -> list[str]:
    commits: list[str] = []
    store._writer.connection.set_trace_callback(lambda statement: commits.append(statement) if statement == "commit" else None)
    return commits


def put_of(name: str, queue: str = "jobs") -> Put:
    return Put(queue, [Item(name, Raw(b"1"))])


def run_together(store: SqliteStore, *commands: Command[Any]) -> list[Job]:
    """What a leader does who finds these in line."""
    jobs = [Job(command) for command in commands]
    store.run(jobs)
    return jobs


# Sharing


def test_threads_share_commits(store: SqliteStore) -> None:
    commits = count_commits(store)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: put(store, str(n)), range(800)))
    assert len(waiting(store)) == 800
    assert len(commits) < 400


def test_a_lone_thread_commits_for_itself(store: SqliteStore) -> None:
    commits = count_commits(store)
    for n in range(20):
        put(store, str(n))
    assert len(commits) == 20


def test_commands_handed_over_together_are_one_commit(store: SqliteStore) -> None:
    commits = count_commits(store)
    jobs = run_together(store, put_of("a"), put_of("b"), Claim("jobs", lease_s=60))
    assert [message.id for message in jobs[2].result().messages] == ["a"]
    assert len(commits) == 1


# Failing


def test_a_command_that_fails_in_the_middle_fails_alone(store: SqliteStore) -> None:
    before, failing, after = run_together(store, put_of("a"), Failing(), put_of("b"))
    assert before.result().created == [True]
    assert after.result().created == [True]
    with pytest.raises(RuntimeError, match="in the middle"):
        failing.result()
    assert waiting(store) == ["a", "b"]
    assert "half" not in str(store._writer.connection.execute("select cast(data as text) from holdfast_events").fetchall())


def test_a_lone_command_that_fails_leaves_nothing(store: SqliteStore) -> None:
    put(store, "a")
    with pytest.raises(RuntimeError, match="in the middle"):
        store.execute(Failing())
    put(store, "b")
    assert waiting(store) == ["a", "b"]
    assert "half" not in str(store._writer.connection.execute("select cast(data as text) from holdfast_events").fetchall())


def test_a_refusal_disturbs_nobody_and_costs_no_second_commit(store: SqliteStore) -> None:
    store.execute(Configure("queue", "small", maxsize=1))
    commits = count_commits(store)
    jobs = run_together(store, put_of("a"), put_of("b", "small"), put_of("c", "small"), put_of("d"))
    assert [job.error for job in jobs if job is not jobs[2]] == [None, None, None]
    with pytest.raises(QueueFull):
        jobs[2].result()
    assert waiting(store) == ["a", "d"]
    assert len(commits) == 1


def test_a_refusal_of_a_commit_that_was_given_up_is_forgotten_when_the_command_then_succeeds(store: SqliteStore) -> None:
    store.execute(Configure("queue", "jobs", maxsize=1))
    jobs = run_together(store, put_of("a"), put_of("b"), Failing())
    assert [type(job.error) for job in jobs] == [type(None), QueueFull, RuntimeError]
    again = run_together(store, Claim("jobs", lease_s=60), put_of("b"), Failing())
    assert [type(job.error) for job in again] == [type(None), type(None), RuntimeError]


def test_each_thread_gets_its_own_error(store: SqliteStore) -> None:
    store.execute(Configure("queue", "jobs", maxsize=50))

    def try_to_put(n: int) -> bool:
        try:
            put(store, str(n))
        except QueueFull:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        accepted = list(pool.map(try_to_put, range(200)))
    assert sum(accepted) == 50
    assert {str(n) for n, was_accepted in enumerate(accepted) if was_accepted} == set(waiting(store))


def test_a_commit_that_fails_is_an_unknown_outcome_for_all_and_the_store_goes_on(store: SqliteStore) -> None:
    put(store, "a")

    def fail_at_commit(action: int, operation: str | None, *_: object) -> int:
        return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_TRANSACTION and operation == "COMMIT" else sqlite3.SQLITE_OK

    store._writer.connection.set_authorizer(fail_at_commit)
    jobs = run_together(store, put_of("b"), put_of("c"))
    for job in jobs:
        with pytest.raises(OutcomeUnknown):
            job.result()
    put(store, "d")
    assert waiting(store) == ["a", "d"]


def test_a_foreign_writer_costs_a_whole_batch_one_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores.sqlite.file.BUSY_S", 0.05)
    store = SqliteStore(tmp_path / "jobs.db")
    begins: list[str] = []
    store._writer.connection.set_trace_callback(lambda statement: begins.append(statement) if statement == "begin immediate" else None)
    foreign = sqlite3.connect(store.path, isolation_level=None)
    foreign.execute("begin immediate")
    jobs = run_together(store, *[put_of(str(n)) for n in range(20)])
    assert {type(job.error) for job in jobs} == {StoreUnavailable}
    assert len(begins) == 1
    foreign.execute("rollback")
    foreign.close()
    put(store, "a")
    assert waiting(store) == ["a"]
    store.close()


def test_everyone_in_line_learns_that_the_store_was_closed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db")
    errors: list[type[BaseException]] = []

    def put_until_closed(thread: int) -> None:
        n = 0
        try:
            while True:
                put(store, f"{thread}-{(n := n + 1)}")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is compared
            errors.append(type(error))

    threads = [threading.Thread(target=put_until_closed, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    store.close()
    for thread in threads:
        thread.join()
    assert errors == [Closed] * 8


# Ctrl-C

INTERRUPTED = (
    OPENED
    + """
import random, signal

class Interrupt(BaseException):
    pass

def interrupt(*_):
    raise Interrupt

signal.signal(signal.SIGALRM, interrupt)
stop = threading.Event()
acknowledged = [0] * 4

def count(n):
    store.execute(Write("counts", [Change(str(n), do="increment", by=1)]))
    acknowledged[n] += 1

def count_on(n):
    while not stop.is_set():
        count(n)

def counts():
    return [int(bytes(entry.value)) for entry in store.execute(Read("counts")).entries]

def interrupted(times, seed):
    # The timer is set again only after its interrupt arrived: one Ctrl-C at a time, as a hand can.
    chance = random.Random(seed)
    for _ in range(times):
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00001, 0.003))
            while True:
                count(0)
        except Interrupt:
            pass

def storm(times, seed):
    threads = [threading.Thread(target=count_on, args=(n,)) for n in range(1, 4)]
    for n in range(4):
        count(n)
    for thread in threads:
        thread.start()
    interrupted(times, seed)
    stop.set()
    for thread in threads:
        thread.join()
    kept = counts()
    return kept[1:] == acknowledged[1:], acknowledged[0] <= kept[0] <= acknowledged[0] + times
"""
)


def test_a_ctrl_c_leaves_the_other_threads_their_commits_and_loses_none(tmp_path: Path) -> None:
    with Program(INTERRUPTED, tmp_path / "jobs.db") as program:
        assert program.ask("storm(400, seed=1)") == "(True, True)"
        assert program.ask("put('a')") == "[True]"


CLAIMING_INTERRUPTED = (
    INTERRUPTED
    + """
def leased():
    return store.execute(Count("jobs")).leased

def interrupted_claim():
    # Whoever is interrupted in a claim has no message: whether it was given back, or never claimed; None if the claim was through.
    message, before = None, leased()
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.002))
        while True:
            message = None
            message = store.execute(Claim("jobs", lease_s=60.0)).messages[0]
            store.execute(Settle([message.receipt], "ready", "place"))
    except Interrupt:
        return None if message else leased() == before
"""
)


def test_a_ctrl_c_in_a_claim_mostly_gives_the_message_back(tmp_path: Path) -> None:
    # Between the answer and the caller's own variable lie a few instructions where nothing can help: hence not each time.
    with Program(CLAIMING_INTERRUPTED, tmp_path / "jobs.db") as program:
        program.ask("put(*map(str, range(400)))")
        kept = program.ask("[kept for _ in range(300) if (kept := interrupted_claim()) is not None]")
        assert kept.count("True") > kept.count("False")


DURABILITY = {"power": 2, "process": 1}


@pytest.mark.parametrize("durability", ["power", "process"])
def test_the_writer_syncs_as_promised(tmp_path: Path, durability: Any) -> None:
    store = SqliteStore(tmp_path / "jobs.db", durability=durability)
    assert store._writer.connection.execute("pragma synchronous").fetchone() == (DURABILITY[durability],)
    assert store._writer.connection.execute("pragma journal_mode").fetchone() == ("wal",)
    assert store.guarantees.survives == durability
    store.close()


def test_a_writer_opened_again_syncs_as_the_first(store: SqliteStore) -> None:
    store._writer.connection.close()
    put(store, "a")
    assert store._writer.connection.execute("pragma synchronous").fetchone() == (2,)
