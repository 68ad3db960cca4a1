"""Files that are older, newer, moved, damaged, full, read-only or in use: a clear error, and nothing lost."""

import os
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from msgspec import Raw

from holdfast.commands import Item, Put
from holdfast.connect import connect
from holdfast.errors import HoldfastError, SchemaTooNew, StoreCorrupted, StoreError, StoreFull, StoreMoved, StoreUnavailable
from holdfast.stores.sqlite import file
from holdfast.stores.sqlite.store import SqliteStore
from tests.stores.sqlite.programs import Program
from tests.stores.sqlite.stores import OPENED, ack, bytes_of, claim, put, waiting

LARGE = Raw(b'"' + b"x" * 4_000 + b'"')


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one message."""
    path = tmp_path / "jobs.db"
    with closing(SqliteStore(path)) as store:
        put(store, "a")
    return path


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def ask(path: Path, question: str) -> object:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchone()[0]


# Versions


def test_the_applications_tables_and_version_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    change(path, "create table orders (id text primary key)")
    change(path, "insert into orders values ('o')")
    change(path, "pragma user_version = 42")
    change(path, "pragma application_id = 7")
    with closing(SqliteStore(path)) as store:
        put(store, "a")
        assert waiting(store) == ["a"]
    assert ask(path, "select id from orders") == "o"
    assert ask(path, "pragma user_version") == 42
    assert ask(path, "pragma application_id") == 7


def test_all_our_tables_have_our_prefix(path: Path) -> None:
    assert ask(path, "select count(*) from sqlite_master where name not like '%holdfast!_%' escape '!'") == 0


def test_an_older_file_is_brought_up_to_date_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = file.migrations()
    newer = [*steps, "create table holdfast_more (n integer);\ninsert into holdfast_more values (1);\n"]
    monkeypatch.setattr(file, "migrations", lambda: newer)
    for _ in range(2):
        with closing(SqliteStore(path)) as store:
            assert waiting(store) == ["a"]
    assert ask(path, "select count(*) from holdfast_more") == 1
    assert ask(path, "select value from holdfast_meta where name = 'expanded'") == str(len(newer))


def test_a_release_works_on_a_file_that_a_newer_one_only_added_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = [*file.migrations(), "alter table holdfast_messages add column later text default 'added';\n"]
    with monkeypatch.context() as patch:
        patch.setattr(file, "migrations", lambda: newer)
        SqliteStore(path).close()
    with closing(SqliteStore(path)) as store:
        put(store, "b")
        assert waiting(store) == ["a", "b"]
    assert ask(path, "select value from holdfast_meta where name = 'expanded'") == str(len(newer))


def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    broken = [*file.migrations(), "create table holdfast_more (n integer);\ninsert into holdfast_nowhere values (1);\n"]
    with monkeypatch.context() as patch:
        patch.setattr(file, "migrations", lambda: broken)
        with pytest.raises(StoreError):
            SqliteStore(path)
    assert path.read_bytes() == before
    with closing(SqliteStore(path)) as store:
        assert waiting(store) == ["a"]


def test_a_newer_file_is_refused_and_stays_byte_for_byte(path: Path) -> None:
    change(path, "update holdfast_meta set value = '99' where name = 'version'")
    before = bytes_of(path)
    with pytest.raises(SchemaTooNew, match=r"format 99.*upgrade Holdfast"):
        SqliteStore(path)
    assert bytes_of(path) == before


def test_a_file_that_was_copied_elsewhere_says_where(path: Path) -> None:
    change(path, "insert into holdfast_meta values ('moved', 'sqlite:////new/jobs.db')")
    before = bytes_of(path)
    with pytest.raises(StoreMoved, match=r"/new/jobs\.db") as caught:
        SqliteStore(path)
    assert caught.value.url == "sqlite:////new/jobs.db"
    assert bytes_of(path) == before


# Damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: random.Random(1).randbytes(len(whole)),
        lambda whole: b"no database, but a letter" * 100,
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:1000],
        lambda whole: b"X" + whole[1:],
        lambda whole: whole[:100] + random.Random(2).randbytes(2_000) + whole[2_100:],
        lambda whole: whole[:2_048] + random.Random(3).randbytes(len(whole) - 2_048),
    ],
    ids=["noise", "text", "half", "a piece", "first byte", "schema", "all but the first page"],
)
def test_a_damaged_file_is_called_so_and_stays_byte_for_byte(path: Path, damage: Callable[[bytes], bytes]) -> None:
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(StoreCorrupted, match="restore a backup"):
        use(path)
    assert path.read_bytes() == before


def use(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        waiting(store)
        put(store, "b")


@pytest.mark.parametrize("name", ["version", "anchor"])
def test_a_damaged_note_of_ours_is_called_so(path: Path, name: str) -> None:
    change(path, "update holdfast_meta set value = '{nonsense' where name = ?", name)
    with pytest.raises(StoreCorrupted, match="restore a backup"):
        SqliteStore(path)


def test_flipped_bits_give_a_clear_error_or_what_was_put_and_never_hang(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        put(store, *[f"m{n:03}" for n in range(100)])
        expected = waiting(store)
    whole, chance = path.read_bytes(), random.Random(4)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            with closing(SqliteStore(path)) as store:
                # A bit of a value or an id may flip unseen; messages must not be made up.
                assert len(waiting(store)) <= len(expected)
        except HoldfastError as error:
            assert str(path) in str(error)  # noqa: PT017 - both ways are right


def test_an_empty_file_is_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with closing(SqliteStore(tmp_path / "empty.db")) as store:
        put(store, "a")
        assert waiting(store) == ["a"]


# Places


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").mkdir()
    with pytest.raises(StoreError, match="is a folder: name a file in it"):
        SqliteStore(tmp_path / "jobs.db")


def test_a_missing_folder_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere of the store .* does not exist: create it"):
        SqliteStore(tmp_path / "nowhere" / "jobs.db")
    assert list(tmp_path.iterdir()) == []


WITHOUT_RIGHTS = """
import os, tempfile
from msgspec import Raw
from holdfast.commands import Item, Put
from holdfast.stores.sqlite.store import SqliteStore

def put_one(path):
    return SqliteStore(path).execute(Put("jobs", [Item("b", Raw(b"1"))])).created

# Once before, so that nothing remains to be imported: without rights the modules may be out of reach.
with tempfile.TemporaryDirectory() as folder:
    put_one(folder + "/warm.db")

def try_to_put():
    if os.geteuid() == 0:  # Permissions do not bind root.
        os.setgid(65534)
        os.setuid(65534)
    return put_one(path)
"""


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that other users reach, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
        Path(folder).chmod(0o700)


def test_a_read_only_file_is_said_and_stays_byte_for_byte(common: Path) -> None:
    path = common / "jobs.db"
    with closing(SqliteStore(path)) as store:
        put(store, "a")
    common.chmod(0o777)
    path.chmod(0o444)
    Path(f"{path}-turns").chmod(0o666)
    before = path.read_bytes()
    with Program(WITHOUT_RIGHTS, path) as other:
        assert other.ask("in_a_child(try_to_put)") == "StoreError"
    assert path.read_bytes() == before


def test_with_all_rights_the_same_put_succeeds(common: Path) -> None:
    path = common / "jobs.db"
    with closing(SqliteStore(path)) as store:
        put(store, "a")
    common.chmod(0o777)
    for place in (path, Path(f"{path}-turns")):
        place.chmod(0o666)
    with Program(WITHOUT_RIGHTS, path) as other:
        assert other.ask("in_a_child(try_to_put)") == "[True]"


def test_a_folder_that_is_read_only_or_closed_is_said(common: Path) -> None:
    path = common / "jobs.db"
    with closing(SqliteStore(path)) as store:
        put(store, "a")
    path.chmod(0o666)
    before = path.read_bytes()
    with Program(WITHOUT_RIGHTS, path) as other:
        common.chmod(0o555)
        assert other.ask("in_a_child(try_to_put)") == "StoreError"
        common.chmod(0o000)
        assert other.ask("in_a_child(try_to_put)") == "StoreError"
    common.chmod(0o700)
    assert path.read_bytes() == before


# No room


def fill(store: SqliteStore) -> list[str]:
    """Put until there is no room; answer what was acknowledged."""
    acknowledged: list[str] = []
    while True:
        name = f"m{len(acknowledged):04}"
        try:
            store.execute(Put("jobs", [Item(name, LARGE)]))
        except StoreFull:
            return acknowledged
        acknowledged.append(name)


def limit_pages(store: SqliteStore, more: int) -> None:
    sql = store._writer.connection
    sql.execute(f"pragma max_page_count = {sql.execute('pragma page_count').fetchone()[0] + more}")


def test_a_full_store_loses_nothing_lets_acks_through_and_recovers(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        store.execute(Put("jobs", [Item(f"held {n}", LARGE) for n in range(5)]))
        held = claim(store, limit=5)
        limit_pages(store, 100)
        kept = fill(store)
        assert waiting(store) == kept
        assert ack(store, held) == [True] * 5
        put(store, "in the room that this made")
        store._writer.connection.execute("pragma max_page_count = 1000000")
        store.execute(Put("jobs", [Item(f"after {n}", LARGE) for n in range(100)]))
        assert waiting(store)[: len(kept)] == kept


def test_one_put_too_many_for_the_room_does_not_fail_the_others_of_its_commit(tmp_path: Path) -> None:
    from holdfast.stores.group_commit import Job

    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        put(store, "a")
        limit_pages(store, 40)
        jobs = [
            Job(Put("jobs", [Item("small", Raw(b"1"))])),
            Job(Put("jobs", [Item(f"large {n}", LARGE) for n in range(200)])),
            Job(Put("jobs", [Item("small too", Raw(b"1"))])),
        ]
        store.run(jobs)
        assert [type(job.error) for job in jobs] == [type(None), StoreFull, type(None)]
        assert waiting(store) == ["a", "small", "small too"]


LIMITED = (
    """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
"""
    + OPENED
    + """
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

acknowledged = []

def fill():
    try:
        while True:
            name = f"m{len(acknowledged):04}"
            store.execute(Put("jobs", [Item(name, Raw(b'"' + b"x" * 4000 + b'"'))]))
            acknowledged.append(name)
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__]
"""
)


def test_a_file_that_may_grow_no_more_loses_nothing_and_recovers(tmp_path: Path) -> None:
    with Program(LIMITED, tmp_path / "jobs.db") as other:
        other.ask("limit(400_000)")
        assert "HoldfastError" in other.ask("fill()")
        kept = eval(other.ask("acknowledged"))  # noqa: S307 - our own program's answer
        assert kept
        other.ask("limit(resource.RLIM_INFINITY)")
        # The one that failed may be there or not, if its outcome was unknown; here it is not, or its put says that it is.
        other.ask("put('after')")
        found = eval(other.ask("waiting()"))  # noqa: S307 - our own program's answer
        assert found[: len(kept)] == kept
        assert found[-1] == "after"
    assert ask(tmp_path / "jobs.db", "pragma integrity_check") == "ok"


# In use by others


def test_a_foreign_writer_is_waited_for(path: Path) -> None:
    with Program(OPENED, path) as other:
        with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
            foreign.execute("begin immediate")
            other.say("put('b')")
            foreign.execute("commit")
        assert other.hear() == "[True]"


def test_a_foreign_writer_that_stays_makes_the_store_unavailable_and_no_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "BUSY_S", 0.05)
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("begin immediate")
        with pytest.raises(StoreUnavailable, match="end its transaction"):
            put(store, "b")
        with pytest.raises(StoreUnavailable, match="end its transaction"):
            SqliteStore(path)
        assert waiting(store) == ["a"]
        foreign.execute("commit")
        put(store, "b")
        assert waiting(store) == ["a", "b"]


def test_what_the_application_reads_meanwhile_does_not_stop_writers(path: Path) -> None:
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("begin")
        foreign.execute("select * from holdfast_messages").fetchall()
        put(store, "b")
        assert waiting(store) == ["a", "b"]


def test_a_store_that_failed_to_open_leaves_nothing_open(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)
    for _ in range(5):
        with pytest.raises(StoreCorrupted):
            SqliteStore(path)
    assert open_descriptors(path) == []


def open_descriptors(path: Path) -> list[int]:
    """Those of this process that lead to the file."""
    found = []
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - a name is all that is asked
        with suppress(OSError):  # The one that listed them is closed by now.
            if os.path.samestat(os.fstat(int(name)), path.stat()):
                found.append(int(name))
    return found


def test_closing_again_does_nothing_and_later_commands_say_so(path: Path) -> None:
    store = connect(f"sqlite:///{path}")
    store.close()
    store.close()
    with pytest.raises(HoldfastError, match="closed"):
        put(store, "b")
    with pytest.raises(HoldfastError, match="closed"):
        waiting(store)
