"""Eight processes on one file for a minute, and under 200 kills: nobody locked out, no message held twice, none lost."""

import os
import random
import signal
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from msgspec import json

from holdfast.commands import Change, Changes, Claim, Count, Read, Settle, Together, Write
from holdfast.commands.topics import queue_topic
from holdfast.stores.sqlite.store import SqliteStore
from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED, waiting_in

pytestmark = [pytest.mark.verify, pytest.mark.timeout(900)]

PROCESSES = 8
KILLS = 200
PAUSES = 12

WORKING = (
    OPENED
    + """
from holdfast.errors import ClaimLost
kept = os.open(path + ".kept", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def is_over():
    return os.path.exists(path + ".over")

def work():
    # Writes down what was acknowledged before it goes on, so that a kill forgets nothing that was promised.
    problems = []
    while not is_over():
        try:
            name = uuid.uuid4().hex
            put(name)
            os.write(kept, name.encode() + b"\\n")
            for message in store.execute(Claim("jobs", holder=str(os.getpid()), lease_s=3.0, limit=2)).messages:
                settle(message)
        except Exception as error:
            problems.append(repr(error))
    return problems

def settle(message):
    try:
        store.execute(Together([Settle([message.receipt]), Write("done", [Change(message.id, do="increment", by=1)])]))
    except ClaimLost:
        pass  # Stopped, or too slow: somebody else may have it now.
"""
)


def finish(path: Path) -> dict[str, int]:
    """Settle what is left, as the workers do, until nothing is; answer how often each message was settled."""
    with closing(SqliteStore(path)) as store:
        while True:
            claimed = store.execute(Claim("jobs", lease_s=60.0, limit=100))
            for message in claimed.messages:
                store.execute(Together([Settle([message.receipt]), Write("done", [Change(message.id, do="increment", by=1)])]))
            stats = store.execute(Count("jobs"))
            if stats.total == 0:
                return read_done(store)


def read_done(store: SqliteStore) -> dict[str, int]:
    done: dict[str, int] = {}
    after, more = None, True
    while more:
        page = store.execute(Read("done", after=after))
        done |= {entry.key: json.decode(entry.value, type=int) for entry in page.entries}
        after, more = (page.entries[-1].key if page.entries else after), page.more
    return done


def held_twice(path: Path) -> list[str]:
    """Messages that were claimed while a claim on them was in force, as the events tell."""
    held: set[str] = set()
    wrong: list[str] = []
    with closing(SqliteStore(path)) as store:
        after, latest = 0, 1
        while after < latest:
            page = store.execute(Changes(queue_topic("jobs"), after=after, limit=10_000))
            after, latest = page.upto, page.latest
            for event in page.events:
                ids = json.decode(event.data)["ids"]
                if event.event == "claimed":
                    wrong += [name for name in ids if name in held]
                    held.update(ids)
                elif event.event in ("settled", "expired"):
                    held.difference_update(ids)
    return wrong


def kept(path: Path) -> set[str]:
    """What was acknowledged; a line that a kill cut short was not."""
    return {line for line in Path(f"{path}.kept").read_text().split("\n") if len(line) == 32}


def check(path: Path) -> None:
    done = finish(path)
    assert kept(path) - done.keys() == set()
    assert {name: count for name, count in done.items() if count != 1} == {}
    assert held_twice(path) == []
    assert waiting_in(path) == []


def end(path: Path, programs: list[Program]) -> list[str]:
    """Let the workers come to an end; answer what went wrong in each."""
    Path(f"{path}.over").touch()
    return [program.hear() for program in programs]


def test_eight_processes_share_a_file_for_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with ExitStack() as stack:
        programs = [stack.enter_context(Program(WORKING, path)) for _ in range(PROCESSES)]
        for program in programs:
            program.say("work()")
        with Program("import time", path) as timer:
            timer.ask("time.sleep(60)")
        assert end(path, programs) == ["[]"] * PROCESSES
    assert len(kept(path)) > 1_000
    check(path)


def test_200_kills_at_random_points_lose_nothing_and_settle_nothing_twice(tmp_path: Path) -> None:
    path, chance = tmp_path / "jobs.db", random.Random(1)
    with ExitStack() as stack:
        programs = [start(stack, path) for _ in range(PROCESSES)]
        for _ in range(KILLS):
            victim = chance.randrange(PROCESSES)
            programs[victim].kill()
            programs[victim] = start(stack, path)
        assert end(path, programs) == ["[]"] * PROCESSES
    check(path)


def test_workers_paused_beyond_their_leases_are_fenced_off(tmp_path: Path) -> None:
    path, chance = tmp_path / "jobs.db", random.Random(2)
    with ExitStack() as stack:
        programs = [start(stack, path) for _ in range(PROCESSES)]
        timer = stack.enter_context(Program("import time", path))
        for _ in range(PAUSES):
            victim = chance.choice(programs)
            victim.send(signal.SIGSTOP)
            os.waitid(os.P_PID, victim.pid, os.WSTOPPED)
            timer.ask("time.sleep(3.5)")  # Leases last 3 s.
            victim.send(signal.SIGCONT)
        assert end(path, programs) == ["[]"] * PROCESSES
    check(path)


def test_settling_apart_from_the_record_does_not_pass_the_test_of_the_kills(tmp_path: Path) -> None:
    path, chance = tmp_path / "jobs.db", random.Random(3)
    apart = WORKING + (
        """
def settle(message):
    store.execute(Write("done", [Change(message.id, do="increment", by=1)]))
    store.execute(Settle([message.receipt]))
"""
    )
    with ExitStack() as stack:
        programs = [start(stack, path, apart) for _ in range(PROCESSES)]
        for _ in range(KILLS):
            victim = chance.randrange(PROCESSES)
            programs[victim].kill()
            programs[victim] = start(stack, path, apart)
        end(path, programs)
    assert max(finish(path).values()) > 1


def start(stack: ExitStack, path: Path, setup: str = WORKING) -> Program:
    program = stack.enter_context(Program(setup, path))
    program.say("work()")
    return program


def test_the_checker_sees_a_message_held_twice(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with Program(OPENED, path) as program:
        program.ask("put('a')")
        program.ask("claim()")
    with closing(SqliteStore(path)) as store:
        store._writer.connection.execute("update holdfast_messages set state = 'ready', alarm = null")
        assert [message.id for message in store.execute(Claim("jobs")).messages] == ["a"]
    assert Counter(held_twice(path)) == {"a": 1}
