import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from holdfast.clock import Host
from holdfast.codec import KEY_BYTES
from holdfast.commands import Change, Changes, Claim, Count, Item, Prune, Put, Read, Settle, Write
from holdfast.errors import Closed, SchemaTooNew, StoreCorrupted, StoreError, StoreFull
from holdfast.stores.lmdb import LmdbStore
from holdfast.stores.lmdb.environment import FORMAT
from holdfast.stores.lmdb.layout import LONGEST, line_key, moment_key, scope, text_key
from holdfast.testing.clock import FakeClock

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200).filter(lambda text: len(text.encode()) <= 200)
keys = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=400).filter(lambda text: len(text.encode()) <= 400)
moments = st.integers(-(2**62), 2**62)
numbers = st.integers(0, 2**63)
priorities = st.integers(-(2**31), 2**31 - 1)


def put(store: LmdbStore, *message_ids: str, value: bytes = b"1") -> None:
    store.execute(Put("jobs", [Item(message_id, Raw(value)) for message_id in message_ids]))


def claim(store: LmdbStore, limit: int = 1, lease_s: float = 60) -> list[str]:
    return [message.id for message in store.execute(Claim("jobs", "me", lease_s, limit)).messages]


def fill(store: LmdbStore) -> int:
    """Put until there is no room; answer how many fitted."""
    for number in range(10_000):
        try:
            put(store, str(number), value=b'"' + b"x" * 20_000 + b'"')
        except StoreFull:
            return number
    raise AssertionError("the store has no limit")


def claim_and_close(store: LmdbStore) -> list[str]:
    claimed = claim(store)
    store.close()
    return claimed


# How keys sort


@given(st.lists(st.tuples(priorities, moments, numbers), min_size=2))
def test_messages_sort_by_priority_then_position_then_number(places: list[tuple[int, int, int]]) -> None:
    by_bytes = sorted(places, key=lambda place: line_key(scope("jobs"), *place))
    assert by_bytes == sorted(places, key=lambda place: (-place[0], *place[1:]))


@given(st.lists(st.tuples(moments, numbers), min_size=2))
def test_alarms_sort_by_moment_then_number(places: list[tuple[int, int]]) -> None:
    assert sorted(places, key=lambda place: moment_key(b"", *place)) == sorted(places)


@given(names, st.lists(keys, min_size=2))
def test_keys_of_a_dict_sort_as_their_text(name: str, texts: list[str]) -> None:
    assert sorted(texts, key=lambda text: text_key(scope(name), text)) == sorted(texts)


@given(names, names)
def test_no_scope_begins_another(one: str, other: str) -> None:
    assert one == other or not scope(one).startswith(scope(other))


@given(st.lists(st.tuples(names, keys), min_size=2, unique=True))
def test_different_names_and_keys_have_different_places_that_fit(pairs: list[tuple[str, str]]) -> None:
    places = {text_key(scope(name), key) for name, key in pairs}
    assert len(places) == len(pairs)
    assert max(map(len, places)) <= LONGEST - 8, "a moment must fit before it"


def test_texts_too_long_for_a_key_are_told_apart_by_a_digest() -> None:
    long, longer = "x" * 600, "x" * 601
    assert text_key(scope("d"), long) != text_key(scope("d"), longer)
    assert len(text_key(scope("d"), long)) == LONGEST


def test_the_longest_keys_of_a_dict_with_the_longest_name_are_read_in_pages_in_order(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path / "store", durability="process")
    name, texts = "n" * 200, [f"{number:03}" + "x" * (KEY_BYTES - 3) for number in range(10)]
    store.execute(Write(name, [Change(text, value=Raw(b"1"), ttl_s=60) for text in reversed(texts)]))
    first = store.execute(Read(name, prefix="00", limit=4)).entries
    rest = store.execute(Read(name, prefix="00", after=first[-1].key)).entries
    assert [entry.key for entry in first + rest] == texts
    assert store.execute(Read(name, prefix="y" * KEY_BYTES)).entries == []
    assert store.execute(Read(name, after="0" * KEY_BYTES)).entries == [*first, *rest]
    assert store.execute(Read(name, keys=["z" * KEY_BYTES])).entries == []
    store.close()


# Several processes, forks and kills


def test_two_processes_opening_a_new_environment_at_once_both_work(tmp_path: Path) -> None:
    program = """
import sys
from holdfast.commands import Item, Put
from holdfast.stores.lmdb import LmdbStore
from msgspec import Raw
store = LmdbStore(sys.argv[1], durability="process")
for number in range(200):
    store.execute(Put("jobs", [Item(f"{sys.argv[2]}-{number}", Raw(b"1"))]))
store.close()
"""
    folder = tmp_path / "store"
    running = [subprocess.Popen([sys.executable, "-c", program, str(folder), name]) for name in ("a", "b", "c")]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    store = LmdbStore(folder)
    assert store.execute(Count("jobs")).ready == 600
    assert len(store.execute(Changes("queue:jobs", limit=1_000)).events) == 600
    store.close()


def test_a_waiter_is_woken_by_another_process(tmp_path: Path) -> None:
    program = """
import sys
from holdfast.commands import Item, Put
from holdfast.stores.lmdb import LmdbStore
from msgspec import Raw
sys.stdin.readline()
LmdbStore(sys.argv[1], durability="process").execute(Put("jobs", [Item("a", Raw(b"1"))]))
"""
    store = LmdbStore(tmp_path / "store", durability="process")
    with (
        store.mark("queue:jobs") as mark,
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "store")], stdin=subprocess.PIPE) as other,
    ):
        assert claim(store) == []
        other.communicate(b"\n")
        store.wait(mark, timeout_s=60)
        assert claim(store) == ["a"]
    store.close()


def in_a_child(answer_of: Callable[[], object]) -> str:
    """What a forked child answers."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = str(answer_of())
        except BaseException as error:  # noqa: BLE001 - the parent must hear of it
            answer = repr(error)
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        return pipe.read()


def test_a_forked_child_uses_the_store_beside_its_parent(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path / "store", durability="process")
    put(store, "a", "b", "c")
    assert in_a_child(lambda: claim(store)) == "['a']"
    assert claim(store) == ["b"]
    assert in_a_child(lambda: claim_and_close(store)) == "['c']"
    assert store.execute(Count("jobs")).leased == 3
    store.close()


def test_a_fork_leaves_the_readers_of_other_threads_alone(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path / "store", durability="process")
    put(store, *[str(number) for number in range(1_000)])
    stop, failures = threading.Event(), list[BaseException]()

    def look() -> None:
        try:
            while not stop.is_set():
                assert store.execute(Count("jobs")).total == 1_000
                assert claim(store, lease_s=0.000_001)
        except BaseException as error:  # noqa: BLE001 - told in the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    answers = [in_a_child(lambda: store.execute(Count("jobs")).total) for _ in range(10)]
    stop.set()
    for thread in threads:
        thread.join()
    assert answers == ["1000"] * 10
    assert failures == []
    store.close()


def test_a_child_whose_parent_keeps_an_error_can_still_open_the_store(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path / "store", durability="process")
    put(store, "a")
    with pytest.raises(ValueError, match="pattern of the test") as kept:
        store.execute(_Broken())
    assert in_a_child(lambda: claim(store)) == "['a']", kept
    store.close()


class _Broken(Put, frozen=True):
    queue: str = "jobs"
    items: tuple[Item, ...] = (Item("x", Raw(b"1")),)

    def write(self, tx: object, plan: object) -> object:  # type: ignore[override]
        super().write(tx, plan)  # type: ignore[arg-type]
        raise ValueError("pattern of the test")


def test_a_command_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path / "store", durability="process")
    with pytest.raises(ValueError, match="pattern of the test"):
        store.execute(_Broken())
    assert store.execute(Count("jobs")).total == 0
    assert store.execute(Changes("queue:jobs")).events == []
    store.close()


def test_what_a_killed_writer_was_told_is_there_and_nothing_is_half(tmp_path: Path) -> None:
    program = """
import itertools, sys
from holdfast.commands import Change, Item, Put, Together, Write
from holdfast.stores.lmdb import LmdbStore
from msgspec import Raw
store = LmdbStore(sys.argv[1], durability="process")
for number in itertools.count():
    value = Raw(str(number).encode())
    store.execute(Together([Put("jobs", [Item(str(number), value)]), Write("counts", [Change("last", value=value)])]))
    print(number, flush=True)
"""
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "store")], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            told = [int(writer.stdout.readline()) for _ in range(20)][-1]
            writer.send_signal(signal.SIGKILL)
        store = LmdbStore(tmp_path / "store", durability="process")
        last = json.decode(store.execute(Read("counts", keys=["last"])).entries[0].value)
        assert last >= told
        assert store.execute(Count("jobs")).ready > last
        put(store, f"after-{told}")
        store.execute(Prune())
        store.close()


# Two stores in one process


def test_two_stores_of_one_process_share_the_environment(tmp_path: Path) -> None:
    one, other = LmdbStore(tmp_path / "store", durability="process"), LmdbStore(tmp_path / "store", durability="process")
    put(one, "a")
    one.close()
    assert claim(other) == ["a"]
    with pytest.raises(Closed):
        claim(one)
    other.close()


def test_power_is_not_promised_where_the_process_has_less(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path / "store", durability="process")
    with pytest.raises(StoreError, match="durability"):
        LmdbStore(tmp_path / "store", durability="power")
    store.close()


# No room, and what else may be wrong


def test_a_full_map_refuses_puts_and_lets_work_be_finished(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path / "store", durability="process", map_size=2**22)
    count = fill(store)
    assert store.execute(Count("jobs")).ready == count, "what was refused left nothing"
    for _ in range(count):
        held = store.execute(Claim("jobs", "me", 60)).messages
        assert store.execute(Settle([message.receipt for message in held])).held == [True]
    put(store, "again", value=b'"' + b"x" * 20_000 + b'"')
    assert claim(store) == ["again"]
    store.close()


def test_the_map_grows_up_to_its_limit_and_other_processes_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores.lmdb.environment.FIRST_MAP_BYTES", 2**20)
    program = """
import sys
from holdfast.commands import Count
from holdfast.stores.lmdb import LmdbStore, environment
environment.FIRST_MAP_BYTES = 2**20
store = LmdbStore(sys.argv[1], durability="process")
for _ in sys.stdin:
    print(store.execute(Count("jobs")).ready, flush=True)
"""
    folder = tmp_path / "store"
    store = LmdbStore(folder, durability="process")
    with subprocess.Popen([sys.executable, "-c", program, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin
        assert other.stdout
        print(file=other.stdin, flush=True)
        assert other.stdout.readline() == "0\n"
        for number in range(100):
            put(store, str(number), value=b'"' + b"x" * 100_000 + b'"')
        print(file=other.stdin, flush=True)
        assert other.stdout.readline() == "100\n"
        other.stdin.close()
    store.close()


def test_an_environment_of_a_newer_version_is_refused_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    LmdbStore(folder, durability="process").close()
    with lmdb.open(str(folder), max_dbs=1) as environment, environment.begin(write=True) as txn:
        txn.put(b"format", str(FORMAT + 1).encode(), db=environment.open_db(b"about", txn=txn))
    before = (folder / "data.mdb").read_bytes()
    with pytest.raises(SchemaTooNew, match="upgrade"):
        LmdbStore(folder)
    assert (folder / "data.mdb").read_bytes() == before


def test_an_environment_of_another_program_is_refused(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "theirs")) as environment, environment.begin(write=True) as txn:
        txn.put(b"theirs", b"1")
    with pytest.raises(StoreCorrupted, match="another program"):
        LmdbStore(tmp_path / "theirs")


def test_what_is_no_environment_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"no environment " * 1_000)
    with pytest.raises(StoreCorrupted, match="backup"):
        LmdbStore(folder)


def test_an_environment_that_was_cut_off_is_an_error_and_no_crash(tmp_path: Path) -> None:
    program = """
import sys
from holdfast.commands import Claim, Count, Read
from holdfast.errors import StoreError
from holdfast.stores.lmdb import LmdbStore
try:
    store = LmdbStore(sys.argv[1])
    store.execute(Claim("jobs", "me", 60, 1_000))
    store.execute(Count("jobs"))
except StoreError as error:
    print(type(error).__name__)
"""
    folder = tmp_path / "store"
    store = LmdbStore(folder, durability="process")
    put(store, *[str(number) for number in range(5_000)])
    store.close()
    os.truncate(folder / "data.mdb", 20 * 4_096)
    told = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout == "StoreCorrupted\n"


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="create it"):
        LmdbStore(tmp_path / "missing" / "store")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="create it"):
        LmdbStore(tmp_path / "file" / "store")


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['lmdb'] = None\nfrom holdfast import connect\nconnect(sys.argv[1])"
    url = f"lmdb:///{tmp_path / 'store'}"
    told = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=False, timeout=60)
    assert "pip install 'holdfast[lmdb]'" in told.stderr


# Time


def test_time_goes_on_after_a_reboot_even_if_the_wall_clock_was_set_back(tmp_path: Path) -> None:
    def boot(name: str, wall_us: int) -> LmdbStore:
        return LmdbStore(tmp_path / "store", durability="process", host=Host(lambda: 1_000, lambda: name, lambda: wall_us))

    store = boot("first", 2_000_000_000)
    put(store, "a")
    written = store.clock.now_us()
    store.close()
    store = boot("second", 5)
    assert store.clock.now_us() > written
    store.close()


def test_events_are_read_past_a_long_stretch_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.stores.lmdb.log.STRETCH", 10)
    store = LmdbStore(tmp_path / "store", durability="process", clock=FakeClock())
    for number in range(35):
        put(store, str(number))
    store.execute(Write("settings", [Change("key", value=Raw(b"1"))]))
    found, after, asked = list[str](), -1, 0
    while not found:
        page = store.execute(Changes("dict:settings", after))
        found, after, asked = [event.event for event in page.events], page.upto, asked + 1
    assert (found, asked) == (["written"], 4)
    store.close()
