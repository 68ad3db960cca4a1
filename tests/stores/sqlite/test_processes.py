"""Several processes on one file: nobody locked out, no message held twice, none lost."""

from contextlib import ExitStack
from pathlib import Path

from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED, waiting_in

WORKING = (
    OPENED
    + """
def work(name, cycles):
    # Each message is put, claimed and settled by somebody; settling and its record are one step. Answers what went wrong.
    problems = []
    for n in range(cycles):
        put(f"{name}-{n:05}")
        for message in store.execute(Claim("jobs", holder=name, lease_s=60.0)).messages:
            try:
                store.execute(Together([Settle([message.receipt]), Write("done", [record(message)])]))
            except Exception as error:
                problems.append(type(error).__name__)
    return problems

def record(message):
    # Expected absent: whoever is second to settle a message is refused.
    return Change(message.id, value=Raw(b"1"), expect="absent")

def done():
    return len(store.execute(Read("done", limit=10_000)).entries)
"""
)

WITHOUT_LEASES = (
    WORKING
    + """
def work(name, cycles):
    # A deliberately broken worker: it looks instead of claiming, so that two may have one message in hand.
    problems = []
    for n in range(cycles):
        put(f"{name}-{n:05}")
        for message in store.execute(Browse("jobs", limit=1)).messages:
            try:
                store.execute(Write("done", [record(message)], all_or_none=True))
                store.execute(Move("jobs", "gone", ids=[message.id]))
            except Exception as error:
                problems.append(type(error).__name__)
    return problems
"""
)

PROCESSES = 8
CYCLES = 40


def work_side_by_side(path: Path, setup: str) -> list[str]:
    """Let the processes work at once; answer what went wrong in each."""
    with ExitStack() as stack:
        programs = [stack.enter_context(Program(setup, path)) for _ in range(PROCESSES)]
        for number, program in enumerate(programs):
            program.say(f"work('p{number}', {CYCLES})")
        return [program.hear() for program in programs]


def test_eight_processes_share_a_file_and_no_message_is_held_twice_or_lost(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    assert work_side_by_side(path, WORKING) == ["[]"] * PROCESSES
    with Program(WORKING, path) as program:
        assert int(program.ask("done()")) == PROCESSES * CYCLES
    assert waiting_in(path) == []


def test_workers_that_look_instead_of_claiming_do_not_pass_the_test_of_the_message_held_twice(tmp_path: Path) -> None:
    assert work_side_by_side(tmp_path / "jobs.db", WITHOUT_LEASES) != ["[]"] * PROCESSES


OPENING = """
import threading
from msgspec import Raw
from holdfast.commands import Item, Put
from holdfast.connect import connect

def open_and_put(name):
    return connect(f"sqlite:///{path}").execute(Put("jobs", [Item(name, Raw(b"1"))])).created
"""


def open_at_once(path: Path, count: int) -> list[str]:
    with ExitStack() as stack:
        programs = [stack.enter_context(Program(OPENING, path)) for _ in range(count)]
        for number, program in enumerate(programs):
            program.say(f"open_and_put('{number}')")
        return [program.hear() for program in programs]


def test_two_processes_opening_a_new_file_at_once_both_work(tmp_path: Path) -> None:
    for attempt in range(3):
        path = tmp_path / f"new-{attempt}.db"
        assert open_at_once(path, 2) == ["[True]"] * 2
        assert sorted(waiting_in(path)) == ["0", "1"]


def test_eight_processes_opening_a_new_file_at_once_all_work(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    assert open_at_once(path, 8) == ["[True]"] * 8
    assert len(waiting_in(path)) == 8


def test_a_process_killed_in_its_transaction_leaves_nothing_half_done_and_nobody_waiting(tmp_path: Path) -> None:
    stopping = (
        OPENED
        + """
def stop_before_commit(statement):
    if statement == "commit":
        print("now", flush=True)
        threading.Event().wait()

def stop_there():
    store._writer.connection.set_trace_callback(stop_before_commit)
"""
    )
    with ExitStack() as stack:
        killed, other = (stack.enter_context(Program(setup, tmp_path / "jobs.db")) for setup in (stopping, OPENED))
        killed.ask("put('a')")
        killed.ask("stop_there()")
        killed.say("put('b')")
        assert killed.hear() == "now"
        killed.kill()
        assert other.ask("put('c')") == "[True]"
        assert other.ask("waiting()") == "['a', 'c']"


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    with Program(OPENED, tmp_path / "jobs.db") as program:
        program.ask("put('a')")
        assert program.ask("claim_one()") == "a"
        program.ask("put('b')")
    assert waiting_in(tmp_path / "jobs.db") == ["b"]


def test_a_claim_of_a_killed_process_stays_its_own_until_the_lease_ends(tmp_path: Path) -> None:
    with Program(OPENED, tmp_path / "jobs.db") as program:
        program.ask("put('a')")
        assert program.ask("claim(lease_s=0.2)") == "['a']"
    with Program(OPENED, tmp_path / "jobs.db") as program:
        program.ask_until("['a']", "claim()")
        assert program.ask("claim()") == "[]"
