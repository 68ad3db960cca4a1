"""Turns between real processes: one at a time, fair, and free again whatever happens to the one who had it."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.errors import Closed, StoreError
from holdfast.stores.files.turns import KEPT, Turns
from tests.stores.sqlite.programs import Program

OPENED = """
import os, threading, time
from holdfast.stores.files import turns as module
from holdfast.stores.files.turns import GATE, PEN, PRESENCE, TURN, Turns
turns = Turns.shared(path)

def locked_by_others(byte):
    return turns._locks.process_at(byte) is not None
"""

TAKEN = "None"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    path.touch(mode=0o640)
    return path


def others(database: Path, stack: ExitStack, count: int, setup: str = OPENED) -> list[Program]:
    return [stack.enter_context(Program(setup, database)) for _ in range(count)]


# One at a time

COUNTING = (
    OPENED
    + """
from statistics import median
tally = os.open(path + ".tally", os.O_RDWR | os.O_CREAT)

def total():
    return int(os.pread(tally, 20, 0) or b"0")

def count_to(end, pause_s=0.0):
    mine, overtaken = 0, [0]
    while True:
        before = total()
        take()
        now = total()
        if pause_s:
            time.sleep(pause_s)
        if now < end:
            os.pwrite(tally, b"%d" % (now + 1), 0)
        done()
        if now > before:
            overtaken.append(now - before)
        if now >= end:
            return mine, median(overtaken)
        mine += 1

def take():
    turns.take(60)

def done():
    turns.done()
"""
)

WITHOUT_TURNS = (
    COUNTING
    + """
def take(): pass
def done(): pass
"""
)

LIKE_A_BUSY_HANDLER = (
    COUNTING
    + """
def take():
    while not turns._locks.lock_now(PEN, PEN):
        time.sleep(0.1)
def done():
    turns._locks.unlock(PEN)
"""
)


def answers(database: Path, setup: str, expression: str) -> list[float]:
    with ExitStack() as stack:
        programs = others(database, stack, 3, setup)
        for program in programs:
            program.say(expression)
        return [float(program.hear()) for program in programs]


SEVERAL = 48
"""Far more than who stands in line, far fewer than who does not."""


def test_one_process_at_a_time_has_the_turn(database: Path) -> None:
    assert sum(answers(database, COUNTING, "count_to(200, pause_s=0.005)[0]")) == 200


def test_control_without_turns_the_same_count_goes_wrong(database: Path) -> None:
    assert sum(answers(database, WITHOUT_TURNS, "count_to(200, pause_s=0.005)[0]")) != 200


def test_who_waits_is_overtaken_by_a_few_turns_of_the_others_at_most(database: Path) -> None:
    assert max(answers(database, COUNTING, "count_to(20_000)[1]")) <= SEVERAL


def test_a_busy_handler_does_not_pass_the_test_of_fairness(database: Path) -> None:
    assert max(answers(database, LIKE_A_BUSY_HANDLER, "count_to(20_000)[1]")) > SEVERAL


# Waiting


def test_who_waits_too_long_is_told_who_keeps_the_turn(database: Path) -> None:
    with ExitStack() as stack:
        holder, waiter = others(database, stack, 2)
        holder.ask("turns.take(60)")
        complaint = waiter.ask("turns.take(0.05)")
        assert complaint.startswith("StoreUnavailable: ")
        assert f"{database}-turns: process {holder.pid} kept the turn" in complaint
        holder.ask("turns.done()")
        assert waiter.ask("turns.take(60)") == TAKEN


def test_an_interrupted_wait_leaves_no_turn_behind(database: Path) -> None:
    with ExitStack() as stack:
        holder, waiter, third = others(database, stack, 3)
        holder.ask("turns.take(60)")
        waiter.say("turns.take(60)")
        third.ask_until("True", "locked_by_others(GATE)")
        waiter.send(signal.SIGINT)
        assert waiter.hear().startswith("KeyboardInterrupt")
        holder.ask("turns.done()")
        assert third.ask("turns.take(60)") == TAKEN
        third.ask("turns.done()")
        assert waiter.ask("turns.take(60)") == TAKEN


def test_two_files_crosswise_are_no_deadlock(database: Path) -> None:
    both = OPENED + "second = Turns.shared(path + '2')"
    with ExitStack() as stack:
        one, two = others(database, stack, 2, both)
        one.ask("turns.take(60)")
        two.ask("second.take(60)")
        one.ask("[thread := threading.Thread(target=second.take, args=(60,)), thread.start()]")
        two.ask("[thread := threading.Thread(target=turns.take, args=(60,)), thread.start()]")
        one.ask_until("True", "locked_by_others(GATE)")
        two.ask_until("True", "second._locks.process_at(GATE) is not None")
        one.ask("turns.done()")
        two.ask("second.done()")
        assert one.ask("[thread.join(), second._writes][1]") == "True"
        assert two.ask("[thread.join(), turns._writes][1]") == "True"


# A turn that is kept

KEEPING = (
    OPENED
    + """
import ctypes, signal
module.IDLE_S = 60

def use():
    turns.take(60)
    turns.done()

def use_and_hold_the_interpreter():
    use()
    ctypes.PyDLL(None).sleep(3600)

def use_and_stop():
    use()
    os.kill(os.getpid(), signal.SIGSTOP)
"""
)


def keep_a_turn(database: Path, stack: ExitStack, using: str) -> tuple[Program, Program]:
    """One program that waited for its turn, wrote once and kept it, and another that wants to write."""
    other, keeper = others(database, stack, 2, KEEPING)
    keeper.ask("setattr(module, 'LOOK_S', 60)")  # It is to be given its turn, not to pass.
    other.ask("turns.take(60)")
    keeper.say(using)
    other.ask_until("True", "locked_by_others(GATE)")
    other.ask("turns.done()")
    return keeper, other


def test_a_turn_that_was_waited_for_is_kept(database: Path) -> None:
    with ExitStack() as stack:
        keeper, other = keep_a_turn(database, stack, "use()")
        keeper.hear()
        assert keeper.ask("turns._held") == "True"
        assert other.ask("locked_by_others(TURN), locked_by_others(PEN)") == "(True, False)"


def test_a_kept_turn_ends_with_its_last_commit(database: Path) -> None:
    with ExitStack() as stack:
        keeper, other = keep_a_turn(database, stack, "use()")
        keeper.hear()
        for _ in range(KEPT - 1):
            keeper.ask("use()")
        assert other.ask("locked_by_others(TURN), locked_by_others(PEN)") == "(False, False)"


def test_a_kept_turn_that_is_not_used_is_given_up(database: Path) -> None:
    with ExitStack() as stack:
        _, other = keep_a_turn(database, stack, "[setattr(module, 'IDLE_S', 0.001), use()]")
        other.ask_until("False", "locked_by_others(TURN)")


@pytest.mark.parametrize("how", ["use_and_stop()", "use_and_hold_the_interpreter()"])
def test_a_kept_turn_that_nobody_can_give_up_is_passed(database: Path, how: str) -> None:
    with ExitStack() as stack:
        _, other = keep_a_turn(database, stack, how)
        for _ in range(3):
            assert other.ask("use()") == TAKEN
        assert other.ask("locked_by_others(TURN)") == "True"


def test_nobody_passes_one_who_is_stopped_while_writing(database: Path) -> None:
    with ExitStack() as stack:
        _, other = keep_a_turn(database, stack, "[turns.take(60), os.kill(os.getpid(), signal.SIGSTOP)]")
        other.ask_until("True", "locked_by_others(PEN)")
        assert other.ask("turns.take(0.05)").startswith("StoreUnavailable: ")


def test_who_was_passed_goes_back_to_the_line(database: Path) -> None:
    with ExitStack() as stack:
        keeper, other = keep_a_turn(database, stack, "use()")
        keeper.hear()
        other.ask("turns.take(60)")
        assert keeper.ask("turns.take(0.05)").startswith("StoreUnavailable: ")
        other.ask("turns.done()")
        assert keeper.ask("use()") == TAKEN


# Death, sleep and forks


def test_a_killed_holder_frees_the_turn(database: Path) -> None:
    with ExitStack() as stack:
        holder, waiter = others(database, stack, 2)
        holder.ask("turns.take(60)")
        waiter.say("turns.take(60)")
        holder.ask_until("True", "locked_by_others(GATE)")
        holder.kill()
        assert waiter.hear() == TAKEN


def test_a_process_stopped_at_the_gate_does_not_stop_the_others(database: Path) -> None:
    with ExitStack() as stack:
        holder, stopped, waiter = others(database, stack, 3)
        holder.ask("turns.take(60)")
        stopped.say("turns.take(60)")
        holder.ask_until("True", "locked_by_others(GATE)")
        stopped.send(signal.SIGSTOP)
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED)
        holder.ask("turns.done()")
        for _ in range(3 * 8):
            assert waiter.ask("turns.take(60)") == TAKEN
            waiter.ask("turns.done()")
        stopped.send(signal.SIGCONT)
        assert stopped.hear() == TAKEN


def test_others_go_on_while_the_forked_child_of_a_killed_holder_lives(database: Path) -> None:
    with ExitStack() as stack:
        holder, waiter = others(database, stack, 2)
        holder.ask("turns.take(60)")
        child = int(holder.ask("fork_a_child_that_stays()"))
        stack.callback(os.kill, child, signal.SIGKILL)
        holder.kill()
        assert waiter.ask("turns.take(60)") == TAKEN
        os.kill(child, 0)


def test_a_flock_does_not_pass_the_test_of_the_forked_child(database: Path) -> None:
    flocked = OPENED + "import fcntl\nfile = open(path + '.flock', 'w')"
    with ExitStack() as stack:
        holder, waiter = others(database, stack, 2, flocked)
        holder.ask("fcntl.flock(file, fcntl.LOCK_EX)")
        child = int(holder.ask("fork_a_child_that_stays()"))
        stack.callback(os.kill, child, signal.SIGKILL)
        holder.kill()
        assert waiter.ask("fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)").startswith("BlockingIOError")


def test_a_forked_child_stands_in_line_for_itself(database: Path) -> None:
    forking = (
        OPENED
        + """
def take_by_itself():
    inherited = turns
    own = Turns.shared(path)
    inherited.close()
    try:
        own.take(0.05)
    finally:
        own.close()
"""
    )
    with ExitStack() as stack:
        holder, waiter = others(database, stack, 2, forking)
        holder.ask("turns.take(60)")
        assert holder.ask("in_a_child(lambda: turns.take(60))") == "Closed"
        assert holder.ask("in_a_child(take_by_itself)") == "StoreUnavailable"
        assert waiter.ask("turns.take(0.05)").startswith("StoreUnavailable")
        holder.ask("turns.done()")
        assert holder.ask("in_a_child(take_by_itself)") == "None"


# One place a process and file


def test_a_second_opening_in_the_process_shares_the_first_and_drops_no_lock(database: Path) -> None:
    with ExitStack() as stack:
        holder, waiter = others(database, stack, 2)
        holder.ask("turns.take(60)")
        assert holder.ask("Turns.shared(path) is turns") == "True"
        holder.ask("turns.close()")
        assert waiter.ask("turns.take(0.05)").startswith("StoreUnavailable")


def test_control_opening_and_closing_the_side_file_itself_would_drop_the_lock(database: Path) -> None:
    with ExitStack() as stack:
        holder, waiter = others(database, stack, 2)
        holder.ask("turns.take(60)")
        holder.ask("open(path + '-turns').close()")
        assert waiter.ask("turns.take(0.05)") == TAKEN


def test_closing_while_in_line_and_opening_again_drops_no_lock(database: Path) -> None:
    with ExitStack() as stack:
        holder, waiter, third = others(database, stack, 3)
        holder.ask("turns.take(60)")
        assert waiter.ask("turns.take(0.05)").startswith("StoreUnavailable")
        waiter.ask("turns.close()")
        assert waiter.ask("(turns := Turns.shared(path)) and None") == "None"
        waiter.say("turns.take(60)")
        holder.ask("turns.done()")
        assert waiter.hear() == TAKEN
        assert third.ask("turns.take(0.05)").startswith("StoreUnavailable")


def test_closing_while_in_line_lets_the_others_pass(database: Path) -> None:
    with ExitStack() as stack:
        holder, waiter, third = others(database, stack, 3)
        holder.ask("turns.take(60)")
        assert waiter.ask("turns.take(0.05)").startswith("StoreUnavailable")
        waiter.ask("turns.close()")
        holder.ask("turns.done()")
        assert third.ask("turns.take(60)") == TAKEN
        assert waiter.ask("turns._attendant.join()") == "None"
        assert waiter.ask("turns._retired") == "True"


def test_a_symbolic_link_leads_to_the_same_place(database: Path) -> None:
    link = database.with_name("link.db")
    link.symlink_to(database)
    first, second = Turns.shared(database), Turns.shared(link)
    assert first is second
    first.close()
    second.close()


def test_the_last_close_closes(database: Path) -> None:
    turns = Turns.shared(database)
    assert Turns.shared(database) is turns
    turns.close()
    turns.take(60)
    turns.done()
    turns.close()
    with pytest.raises(Closed, match="open the store again"):
        turns.take(60)
    turns.close()


def test_the_side_file_is_as_open_to_others_as_the_database(database: Path) -> None:
    database.chmod(0o660)
    Turns.shared(database).close()
    assert Path(f"{database}-turns").stat().st_mode & 0o777 == 0o660


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing.store\.db-turns cannot be used"):
        Turns.shared(tmp_path / "missing" / "store.db")


# Presence


def test_a_process_knows_whether_it_is_alone_on_the_file(database: Path) -> None:
    with ExitStack() as stack:
        one, two, three = others(database, stack, 3)
        assert one.ask("turns.alone()") == "False"
        two.ask("turns.close()")
        assert one.ask("turns.alone()") == "False"
        three.kill()
        assert one.ask("turns.alone()") == "True"
