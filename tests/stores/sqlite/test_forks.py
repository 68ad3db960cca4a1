"""Forks: a child goes on with the same store object, on connections of its own, and disturbs nobody."""

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED, waiting_in

FORKING = (
    OPENED
    + """
import asyncio

def fork_a_child_that_asks():
    # The child answers on a pipe, one expression a line, until it is told to end.
    questions, ask = os.pipe()
    answer, answers = os.pipe()
    child = os.fork()
    if not child:
        os.close(ask)
        for line in os.fdopen(questions):
            try:
                said = eval(line)
            except Exception as error:
                said = type(error).__name__
            os.write(answers, f"{said}\\n".encode())
        os._exit(0)
    os.close(questions)
    os.close(answers)
    return child, os.fdopen(ask, "w"), os.fdopen(answer)

def child_says(expression):
    _, ask, answer = child
    print(expression, file=ask, flush=True)
    return answer.readline().strip()

def end_child():
    pid, ask, answer = child
    ask.close()
    answer.close()
    return os.waitpid(pid, 0)[1]
"""
)

WRITING_MEANWHILE = (
    FORKING
    + """
stop = threading.Event()

def write_on():
    while not stop.is_set():
        put(uuid.uuid4().hex)

threads = [threading.Thread(target=write_on) for _ in range(4)]

def children_that_write(count):
    for thread in threads:
        thread.start()
    try:
        return {in_a_child(lambda: put(uuid.uuid4().hex)) for _ in range(count)}
    finally:
        stop.set()
        for thread in threads:
            thread.join()
"""
)


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Program]:
    return lambda setup: Program(setup, tmp_path / "jobs.db")


def test_a_child_uses_the_same_store_object(program: Callable[[str], Program]) -> None:
    with program(FORKING) as parent:
        parent.ask("put('a')")
        assert parent.ask("in_a_child(lambda: put('b'))") == "[True]"
        assert parent.ask("put('c')") == "[True]"
        assert parent.ask("waiting()") == "['a', 'b', 'c']"


def test_what_a_child_was_told_is_kept_stays_when_the_parent_closes_first(program: Callable[[str], Program], tmp_path: Path) -> None:
    with program(FORKING) as parent:
        parent.ask("put('a')")
        parent.ask("(child := fork_a_child_that_asks()) and None")
        assert parent.ask("child_says('put(\\'b\\')')") == "[True]"
        parent.ask("store.close()")
        assert parent.ask("child_says('put(\\'c\\')')") == "[True]"
        assert waiting_in(tmp_path / "jobs.db") == ["a", "b", "c"]
        assert parent.ask("end_child()") == "0"
    assert waiting_in(tmp_path / "jobs.db") == ["a", "b", "c"]


def test_connections_left_open_in_a_child_do_not_pass_the_test_of_the_parent_that_closes_first(tmp_path: Path) -> None:
    careless = (
        FORKING
        + """
left_open = []

def leave_open(self, is_idle):
    left_open.extend((self._writer.connection, *self._readers.connections))
    self._is_inherited = True

type(store).leave_to_parent = leave_open
"""
    )
    with Program(careless, tmp_path / "jobs.db") as parent:
        parent.ask("put('a')")
        parent.ask("(child := fork_a_child_that_asks()) and None")
        parent.ask("child_says('put(\\'b\\')')")
        parent.ask("store.close()")
        assert parent.ask("child_says('put(\\'c\\')')") == "[True]"
        assert waiting_in(tmp_path / "jobs.db") == ["a", "b"]


def test_a_childs_end_does_not_disturb_the_parent(program: Callable[[str], Program]) -> None:
    with program(FORKING) as parent:
        parent.ask("put('a')")
        assert parent.ask("claim_one()") == "a"
        parent.ask("(child := fork_a_child_that_asks()) and None")
        parent.ask("child_says('put(\\'b\\')')")
        parent.ask("child_says('store.close()')")
        assert parent.ask("end_child()") == "0"
        assert parent.ask("ack()") == "True"
        assert parent.ask("waiting()") == "['b']"


def test_a_child_that_never_uses_the_store_leaves_it_as_it_was(program: Callable[[str], Program]) -> None:
    with program(FORKING) as parent:
        parent.ask("put('a')")
        assert parent.ask("in_a_child(lambda: store.close())") == "None"
        assert parent.ask("put('b')") == "[True]"
        assert parent.ask("waiting()") == "['a', 'b']"


def test_a_grandchild_uses_the_store_too(program: Callable[[str], Program]) -> None:
    with program(FORKING) as parent:
        assert parent.ask("in_a_child(lambda: [put('a'), in_a_child(lambda: put('b')), put('c')][1])") == "[True]"
        assert parent.ask("waiting()") == "['a', 'b', 'c']"


def test_children_forked_while_threads_write_are_not_stuck(program: Callable[[str], Program]) -> None:
    with program(WRITING_MEANWHILE) as parent:
        assert parent.ask("children_that_write(25)") == "{'[True]'}"


def test_a_child_of_a_parent_killed_in_its_turn_goes_on(program: Callable[[str], Program], tmp_path: Path) -> None:
    holding = FORKING + "turns = store._turns"
    with ExitStack() as stack:
        parent, other = stack.enter_context(program(holding)), stack.enter_context(program(OPENED))
        parent.ask("put('a')")
        parent.ask("turns.take(60)")
        child = int(parent.ask("fork_a_child_that_stays()"))
        stack.callback(os.kill, child, signal.SIGKILL)
        parent.kill()
        assert other.ask("put('b')") == "[True]"
        os.kill(child, 0)
        assert other.ask("waiting()") == "['a', 'b']"


def test_a_child_forked_in_the_parents_turn_waits_for_it_and_then_writes(program: Callable[[str], Program]) -> None:
    with program(FORKING + "turns = store._turns") as parent:
        parent.ask("put('a')")
        parent.ask("turns.take(60)")
        parent.ask("(child := fork_a_child_that_asks()) and None")
        parent.ask("print('put(\\'b\\')', file=child[1], flush=True)")
        parent.ask("turns.done()")
        assert parent.ask("child[2].readline().strip()") == "[True]"
        assert parent.ask("waiting()") == "['a', 'b']"


TASKS = (
    FORKING
    + """
store = store.for_tasks()

def put(*ids):
    return asyncio.run(store.execute(Put("jobs", [Item(id, Raw(b"1")) for id in ids]))).created
"""
)


def test_a_child_has_a_writer_thread_of_its_own(program: Callable[[str], Program]) -> None:
    with program(TASKS) as parent:
        assert parent.ask("put('a')") == "[True]"
        assert parent.ask("in_a_child(lambda: put('b'))") == "[True]"
        assert parent.ask("put('c')") == "[True]"
        assert parent.ask("in_a_child(lambda: put('c'))") == "[False]"


def test_a_child_closes_the_store_for_tasks_without_waiting_for_the_parents_thread(program: Callable[[str], Program]) -> None:
    with program(TASKS) as parent:
        parent.ask("put('a')")
        assert parent.ask("in_a_child(lambda: store.close())") == "None"
        assert parent.ask("put('b')") == "[True]"
