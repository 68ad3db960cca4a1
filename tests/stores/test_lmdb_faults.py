"""LMDB commits that fail, and interrupts at any moment: the store says what became of them, and goes on."""

import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

import lmdb
import pytest

from holdfast.commands import Clear
from holdfast.errors import OutcomeUnknown, StoreError, StoreFull
from holdfast.stores.lmdb import LmdbStore, failures
from holdfast.testing.conformance.asking import JOBS, browse, claim, ids, put, read, stats, write

Moment = Literal["before", "after"]


class FaultyTransaction:
    """A transaction whose commit fails, with nothing or all of it written, and leaves LMDB in its panic."""

    def __init__(self, environment: "FaultyEnvironment", whole: Any) -> None:
        self._environment = environment
        self._whole = whole

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._whole.abort()

    def commit(self) -> None:
        self._environment.is_in_panic = True
        if self._environment.moment == "after":
            self._whole.commit()
        error: Any = lmdb.Error("mdb_txn_commit")
        error.code = self._environment.code
        raise error


class FaultyEnvironment:
    """An environment in which the next commit fails, and after it everything."""

    def __init__(self, whole: Any, moment: Moment, code: int) -> None:
        self._whole = whole
        self.moment = moment
        self.code = code
        self.is_in_panic = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def begin(self, **options: Any) -> Any:
        if self.is_in_panic:
            raise lmdb.PanicError("mdb_txn_begin")
        txn = self._whole.begin(**options)
        return FaultyTransaction(self, txn) if options.get("write") else txn


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    store = LmdbStore(tmp_path / "store")
    put(store, "a")
    yield store
    store.close()


def let_fail(store: LmdbStore, moment: Moment, code: int) -> FaultyEnvironment:
    environment = store._environment
    faulty = FaultyEnvironment(environment.lmdb, moment, code)
    environment.lmdb = faulty  # type: ignore[assignment]
    return faulty


@pytest.mark.parametrize(("code", "error"), [(errno.ENOSPC, StoreFull), (errno.EIO, StoreError)])
def test_a_commit_that_wrote_nothing_says_so_and_the_store_goes_on(store: LmdbStore, code: int, error: type[Exception]) -> None:
    let_fail(store, "before", code)
    with pytest.raises(error, match="nothing was written"):
        put(store, "b")
    assert ids(browse(store)) == ["a"]
    put(store, "c")
    assert ids(claim(store, 9)) == ["a", "c"]


def test_a_write_that_fell_short_on_a_full_disk_is_a_full_disk(store: LmdbStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "LITTLE_BYTES", 2**80)
    let_fail(store, "before", errno.EIO)
    with pytest.raises(StoreFull):
        put(store, "b")
    put(store, "c")


def test_a_commit_that_failed_and_can_be_read_is_unknown(store: LmdbStore) -> None:
    let_fail(store, "after", errno.EIO)
    with pytest.raises(OutcomeUnknown):
        put(store, "b")
    assert ids(browse(store)) == ["a", "b"]
    put(store, "c")


def test_reading_goes_on_when_lmdb_is_in_its_panic(store: LmdbStore) -> None:
    write(store, "k", 1)
    let_fail(store, "before", errno.EIO).is_in_panic = True
    assert read(store) == {"k": 1}
    put(store, "b")


def test_an_environment_that_cannot_be_opened_anew_is_tried_again(store: LmdbStore, monkeypatch: pytest.MonkeyPatch) -> None:
    let_fail(store, "before", errno.EIO)
    with monkeypatch.context() as context:
        context.setattr(lmdb, "open", lambda *_, **__: _raise(OSError(errno.EMFILE, "too many")))
        for _ in range(2):
            with pytest.raises(StoreError):
                put(store, "b")
        with pytest.raises(StoreError):
            browse(store)
    put(store, "c")
    assert ids(claim(store, 9)) == ["a", "c"]


def _raise(error: Exception) -> None:
    raise error


def test_the_names_of_a_new_environment_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fsync

    def noted(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        sync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    for _ in range(2):
        LmdbStore(tmp_path / "store").close()
    LmdbStore(tmp_path / "other", durability="process").close()
    assert synced == [str(tmp_path / "store"), str(tmp_path)]


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """SIGALRM plays Ctrl-C."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted(store: LmdbStore, after_s: float) -> bool:
    try:
        signal.setitimer(signal.ITIMER_REAL, after_s)
        put(store, "x")
        claim(store)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    return False


# An interrupt that comes while Python forgets a weak reference cannot be raised: Python only tells of it.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("interrupts")
def test_interrupts_at_any_moment_leave_the_store_usable_and_what_was_claimed_is_given_back(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path / "store", durability="process")
    hits = left = 0
    for number in range(400):
        hit = interrupted(store, random.Random(number).uniform(1e-5, 5e-4))
        hits += hit
        left += hit and stats(store).leased > 0
        store.execute(Clear("queue", JOBS))
    assert hits
    assert left <= hits // 10, "an interrupted claim was not given back"  # Some strike when the claim has been returned.
    put(store, "y")
    store.close()


LIMITED = """
import resource, sys
from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.stores.lmdb import LmdbStore
from holdfast.testing.conformance.asking import browse, ids, item, put
store = LmdbStore(sys.argv[1])
put(store, "a")
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, resource.RLIM_INFINITY))
try:
    put(store, *(f"{number}" for number in range(3)), value="x" * 1_000_000)
except OutcomeUnknown:
    print("unknown")
except StoreError as error:
    print("nothing was written" in str(error), ids(browse(store)))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
put(store, "b")
print(ids(browse(store)))
store.close()
"""


def test_a_write_that_really_falls_short_is_settled_by_the_number_of_the_last_transaction(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, tmp_path / "store"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True ['a']", "['a', 'b']"]
