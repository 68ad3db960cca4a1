"""Wake-up hints between real processes: they arrive, they cost nothing when nobody waits, and the dead are cleared away."""

import logging
import os
import queue
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.errors import Closed
from holdfast.stores.files import socketfolder
from holdfast.stores.files.wakeups import DATAGRAM_BYTES, Hint, Wakeups
from holdfast.stores.waiting.waiters import EVERYTHING
from tests.stores.sqlite.programs import Program

OPENED = """
import os, queue, threading
from holdfast.stores.files.wakeups import Wakeups
from holdfast.stores.waiting.waiters import EVERYTHING
heard = queue.SimpleQueue()
wakeups = Wakeups(path, lambda topic, count: heard.put((topic, count)))

def listeners():
    return sum(thread.name == "holdfast wake-ups" for thread in threading.enumerate())
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    path.touch(mode=0o640)
    return path


class Listening:
    """Wake-ups in this process, and what they heard."""

    def __init__(self, database: Path) -> None:
        self.heard: queue.SimpleQueue[Hint] = queue.SimpleQueue()
        self.wakeups = Wakeups(database, lambda topic, count: self.heard.put((topic, count)))


@pytest.fixture
def here(database: Path) -> Iterator[Listening]:
    listening = Listening(database)
    yield listening
    listening.wakeups.close()


def sockets(database: Path) -> list[str]:
    folder = Path(f"{database}-wake")
    return [path.name for path in folder.iterdir()] if folder.exists() else []


# Hints arrive


def test_a_hint_reaches_another_process(database: Path, here: Listening) -> None:
    with Program(OPENED, database) as other:
        other.ask("wakeups.listen()")
        here.wakeups.post([("queue:jobs", 3), ("dict:seen", 1)])
        assert other.ask("heard.get()") == "('queue:jobs', 3)"
        assert other.ask("heard.get()") == "('dict:seen', 1)"


def test_a_process_does_not_send_to_itself(database: Path, here: Listening) -> None:
    here.wakeups.listen()
    with Program(OPENED, database) as other:
        here.wakeups.post([("mine", 1)])
        other.ask("wakeups.post([('theirs', 1)])")
        assert here.heard.get() == ("theirs", 1)


def test_a_listener_that_comes_in_the_same_tick_as_a_post_hears_the_next(database: Path, here: Listening) -> None:
    early, late = Listening(database), Listening(database)
    early.wakeups.listen()
    folder = Path(f"{database}-wake")
    tick_ns = folder.stat().st_mtime_ns
    here.wakeups.post([("before", 1)])
    late.wakeups.listen()
    os.utime(folder, ns=(tick_ns, tick_ns))
    here.wakeups.post([("after", 1)])
    assert late.heard.get() == ("after", 1)
    early.wakeups.close()
    late.wakeups.close()


def test_many_hints_are_split_into_datagrams_that_fit(database: Path, here: Listening) -> None:
    hints = [(f"key:{number}:{'x' * 200}", number) for number in range(60)]
    there = Listening(database)
    there.wakeups.listen()
    for first in range(0, 60, 20):
        here.wakeups.post(hints[first : first + 20])
        # So many datagrams in a row may have been more than the socket holds, and the listener then says so in between.
        heard = (hint for hint in iter(there.heard.get, None) if hint != (EVERYTHING, 1))
        assert [next(heard) for _ in range(20)] == hints[first : first + 20]
    there.wakeups.close()


def test_a_topic_too_long_for_a_datagram_counts_as_everything(database: Path, here: Listening) -> None:
    there = Listening(database)
    there.wakeups.listen()
    here.wakeups.post([("x" * DATAGRAM_BYTES, 1)])
    assert there.heard.get() == (EVERYTHING, 1)
    there.wakeups.close()


def test_hints_lost_to_a_full_queue_count_as_everything(database: Path, here: Listening) -> None:
    slow = (
        OPENED
        + """
go_on, waiting = threading.Event(), threading.Event()

def hear(topic, count):
    waiting.set()
    go_on.wait()
    heard.put(topic)

wakeups = Wakeups(path, hear)
"""
    )
    with Program(slow, database) as other:
        other.ask("wakeups.listen()")
        here.wakeups.post([("first", 1)])
        other.ask("waiting.wait()")
        for _ in range(1000):
            here.wakeups.post([("flood", 1)])
        here.wakeups.post([("lost", 1)])
        other.ask("go_on.set()")
        other.ask_until(EVERYTHING, "heard.get()")
        here.wakeups.post([("last", 1)])
        other.ask_until("last", "heard.get()")


def test_what_is_not_a_hint_is_ignored(database: Path, here: Listening) -> None:
    here.wakeups.listen()
    noise, folder = random.Random(7), os.open(f"{database}-wake", os.O_RDONLY | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        # By a descriptor: the path itself may be too long for a socket.
        stranger.connect(f"/proc/self/fd/{folder}/{sockets(database)[0]}")
        for size in range(200):
            stranger.send(noise.randbytes(size))
        stranger.send(b"\x91\x92\xa2\xff\xfe\x01")
        stranger.send(bytes(3 * DATAGRAM_BYTES))
        with Program(OPENED, database) as other:
            other.ask("wakeups.post([('sound', 1)])")
            while (hint := here.heard.get()) != ("sound", 1):
                assert hint == (EVERYTHING, 1)
    os.close(folder)


def test_a_callback_that_fails_is_logged_and_the_next_hint_heard(database: Path, here: Listening, caplog: pytest.LogCaptureFixture) -> None:
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()

    def on_hint(topic: str, _: int) -> None:
        if topic == "bad":
            raise ZeroDivisionError
        heard.put(topic)

    there = Wakeups(database, on_hint)
    there.listen()
    here.wakeups.post([("bad", 1), ("good", 1)])
    assert heard.get() == "good"
    assert "'bad' could not be passed on" in caplog.text
    there.close()


# Whoever only posts


def test_a_process_that_only_posts_makes_no_folder_and_no_thread(database: Path) -> None:
    with Program(OPENED, database) as other:
        other.ask("wakeups.post([('queue:jobs', 1)])")
        assert other.ask("listeners()") == "0"
    assert not Path(f"{database}-wake").exists()


def test_a_listing_is_read_once_while_the_folder_does_not_change(database: Path, here: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Listening(database)
    there.wakeups.listen()
    os.utime(f"{database}-wake", (1, 1))
    here.wakeups.post([("queue:jobs", 1)])
    monkeypatch.setattr(os, "listdir", None)
    here.wakeups.post([("queue:jobs", 1)])
    assert [there.heard.get(), there.heard.get()] == [("queue:jobs", 1), ("queue:jobs", 1)]
    there.wakeups.close()


def test_the_last_listener_to_leave_takes_the_folder_along(database: Path, here: Listening) -> None:
    there = Listening(database)
    there.wakeups.listen()
    here.wakeups.listen()
    there.wakeups.close()
    assert len(sockets(database)) == 1
    here.wakeups.close()
    assert not Path(f"{database}-wake").exists()


# The end of a listener


def test_the_socket_of_a_killed_process_is_cleared_away(database: Path, here: Listening) -> None:
    with Program(OPENED, database) as gone, Program(OPENED, database) as alive:
        gone.ask("wakeups.listen()")
        alive.ask("wakeups.listen()")
        here.wakeups.post([("one", 1)])
        gone.kill()
        assert len(sockets(database)) == 2
        here.wakeups.post([("two", 1)])
        assert [name.split("-")[0] for name in sockets(database)] == [str(alive.pid)]
        assert alive.ask("[heard.get(), heard.get()]") == "[('one', 1), ('two', 1)]"


def test_a_socket_left_from_before_is_cleared_away(database: Path, here: Listening) -> None:
    with Program(OPENED, database) as gone:
        gone.ask("wakeups.listen()")
    here.wakeups.post([("one", 1)])
    assert sockets(database) == []


def test_close_ends_the_listener_and_removes_its_socket(database: Path) -> None:
    with Program(OPENED, database) as other:
        other.ask("wakeups.listen()")
        other.ask("wakeups.listen()")
        assert other.ask("listeners()") == "1"
        other.ask("wakeups.close()")
        other.ask("wakeups.close()")
        assert other.ask("listeners()") == "0"
        assert sockets(database) == []
        assert other.ask("wakeups.post([('queue:jobs', 1)])") == "None"


@pytest.mark.parametrize("reads_already", [True, False])
def test_an_interrupt_while_the_listener_starts_ends_its_thread_without_an_error(
    database: Path, monkeypatch: pytest.MonkeyPatch, *, reads_already: bool
) -> None:
    failed: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda raised: failed.append(raised.exc_value))
    started: list[threading.Thread] = []
    dropped = threading.Event()

    class Interrupted(threading.Thread):
        """Whose start is interrupted when the thread runs already."""

        def run(self) -> None:
            if not reads_already:
                dropped.wait()
            super().run()

        def start(self) -> None:
            started.append(self)
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr(threading, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        Wakeups(database, lambda _topic, _count: None).listen()
    dropped.set()
    started[0].join(60)
    assert (started[0].is_alive(), failed, sockets(database)) == (False, [], [])


def test_closed_wakeups_refuse_to_listen(here: Listening) -> None:
    here.wakeups.close()
    with pytest.raises(Closed, match="open the store again"):
        here.wakeups.listen()


def test_close_from_inside_a_hint_ends_the_listener(database: Path, here: Listening) -> None:
    with Program(OPENED + "wakeups = Wakeups(path, lambda *_: [wakeups.close(), heard.put('closed')])", database) as other:
        other.ask("wakeups.listen()")
        here.wakeups.post([("queue:jobs", 1)])
        assert other.ask("heard.get()") == "closed"
        other.ask_until("0", "listeners()")


# Forks


def test_a_forked_child_leaves_its_parents_socket_alone(database: Path, here: Listening) -> None:
    with Program(OPENED, database) as other:
        other.ask("wakeups.listen()")
        before = sockets(database)
        assert other.ask("in_a_child(wakeups.close)") == "None"
        assert sockets(database) == before
        here.wakeups.post([("queue:jobs", 1)])
        assert other.ask("heard.get()") == "('queue:jobs', 1)"


def test_a_forked_child_listens_for_itself_and_posts_to_its_parent(database: Path) -> None:
    with Program(OPENED, database) as other:
        other.ask("wakeups.listen()")
        child = "[wakeups.listen(), wakeups.post([('from the child', 1)]), listeners(), len(os.listdir(path + '-wake'))]"
        assert other.ask(f"in_a_child(lambda: {child})") == "[None, None, 1, 2]"
        assert other.ask("heard.get()") == "('from the child', 1)"


def test_the_socket_of_a_killed_process_is_cleared_away_while_its_forked_child_lives(database: Path, here: Listening) -> None:
    with ExitStack() as stack:
        gone = stack.enter_context(Program(OPENED, database))
        gone.ask("wakeups.listen()")
        child = int(gone.ask("fork_a_child_that_stays()"))
        stack.callback(os.kill, child, 9)
        gone.kill()
        here.wakeups.post([("one", 1)])
        assert sockets(database) == []


# Where the sockets are


def test_a_path_too_long_for_a_socket_works(tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 30) / ("deeper" * 20)
    deep.mkdir(parents=True)
    database = deep / "store.db"
    database.touch()
    here = Listening(database)
    with Program(OPENED, database) as other:
        other.ask("wakeups.listen()")
        here.wakeups.post([("down", 1)])
        assert other.ask("heard.get()") == "('down', 1)"
        here.wakeups.listen()
        other.ask("wakeups.post([('up', 1)])")
        assert here.heard.get() == ("up", 1)
    here.wakeups.close()


def test_where_there_is_no_way_through_a_descriptor_processes_meet_in_a_temporary_folder(database: Path, tmp_path: Path) -> None:
    elsewhere = f"""
import tempfile
from holdfast.stores.files import socketfolder, wakeups as module
tempfile.tempdir = {str(tmp_path / "tmp")!r}
module.folder_for = socketfolder.temporary_folder_for
"""
    (tmp_path / "tmp").mkdir()
    with ExitStack() as stack:
        one, two = (stack.enter_context(Program(elsewhere + OPENED, database)) for _ in range(2))
        one.ask("wakeups.listen()")
        two.ask("wakeups.post([('queue:jobs', 1)])")
        assert one.ask("heard.get()") == "('queue:jobs', 1)"
        (folder,) = (tmp_path / "tmp").iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_temporary_folder_that_others_can_enter_is_not_trusted(database: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    trap.chmod(0o777)
    socketfolder.make_folder(str(trap), database)
    with pytest.raises(PermissionError, match="not made by us"), socketfolder.opened(str(trap), database):
        pass


def test_the_folder_and_its_sockets_are_as_open_to_others_as_the_database(database: Path, here: Listening) -> None:
    database.chmod(0o660)
    here.wakeups.listen()
    folder = Path(f"{database}-wake")
    assert folder.stat().st_mode & 0o777 == 0o770
    assert (folder / sockets(database)[0]).stat().st_mode & 0o777 == 0o660


def test_without_a_socket_the_log_says_that_waits_poll(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "store.db-wake").write_text("in the way")
    here = Listening(tmp_path / "store.db")
    with caplog.at_level(logging.WARNING):
        here.wakeups.listen()
        here.wakeups.listen()
    assert len(caplog.records) == 1
    assert "waits poll instead" in caplog.text
    here.wakeups.post([("queue:jobs", 1)])
    here.wakeups.close()
