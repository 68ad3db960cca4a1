"""Retries whose attempts outlive the process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tenacity import RetryCallState, RetryError, retry_if_exception_type, stop_after_attempt, wait_none

from holdfast.client import client_for
from holdfast.surfaces.localqueue.retry import (
    AttemptStore,
    LMDBAttemptStore,
    MemoryAttemptStore,
    PersistentAsyncRetrying,
    PersistentRetryExhausted,
    PersistentRetrying,
    RetryRecord,
    SQLiteAttemptStore,
    URLAttemptStore,
    close_default_store,
    configure_default_store,
    configure_default_store_factory,
    idempotency_key_from_id,
    key_from_argument,
    key_from_attr,
    persistent_async_retry,
    persistent_retry,
)


@pytest.fixture(params=["memory", "sqlite", "lmdb", "own"])
def attempts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AttemptStore]:
    stores: dict[str, Any] = {
        "memory": MemoryAttemptStore,
        "sqlite": lambda: SQLiteAttemptStore(tmp_path / "made" / "retries.sqlite3"),
        "lmdb": lambda: LMDBAttemptStore(tmp_path / "retries"),
        "own": OwnStore,
    }
    store = stores[request.param]()
    yield store
    store.close()


class OwnStore:
    """A user's own store, as the protocol documents it."""

    def __init__(self) -> None:
        self.records: dict[str, RetryRecord] = {}

    def load(self, key: str) -> RetryRecord | None:
        return self.records.get(key)

    def save(self, key: str, record: RetryRecord) -> None:
        self.records[key] = record

    def delete(self, key: str) -> None:
        self.records.pop(key, None)

    def prune_exhausted(self, *, older_than: float, now: float) -> int:
        doomed = [key for key, one in self.records.items() if one.exhausted and one.first_attempt_at <= now - older_than]
        for key in doomed:
            del self.records[key]
        return len(doomed)

    def count_exhausted_older_than(self, *, older_than: float, now: float) -> int:
        return sum(one.exhausted and one.first_attempt_at <= now - older_than for one in self.records.values())

    def close(self) -> None:
        self.records.clear()


class Flaky:
    """Fails so many times, then answers."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self, job_id: str) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError(f"down for {job_id}")
        return f"done {job_id}"

    async def later(self, job_id: str) -> str:
        return self(job_id)


def retrying(attempts: AttemptStore, **options: Any) -> PersistentRetrying:
    return PersistentRetrying(store=attempts, **{"wait": wait_none(), "key_fn": key_from_argument("job_id"), **options})


def test_a_success_is_answered_and_forgets_the_attempts(attempts: AttemptStore) -> None:
    retryer = retrying(attempts, max_tries=3)
    assert retryer(Flaky(2), "a") == "done a"
    assert retryer.get_record("a") is None
    assert retryer.statistics["attempt_number"] == 3


def test_attempts_go_on_where_another_process_stopped(attempts: AttemptStore) -> None:
    attempts.save("a", RetryRecord(attempts=2, first_attempt_at=5.0))
    seen: list[int] = []

    def note(state: RetryCallState) -> None:
        seen.append(state.attempt_number)

    job = Flaky(9)
    with pytest.raises(ConnectionError):
        retrying(attempts, max_tries=4, before=note)(job, "a")

    assert (job.calls, seen) == (2, [3, 4])
    assert attempts.load("a") == RetryRecord(4, 5.0, exhausted=True)


def test_an_exhausted_key_raises_without_a_call(attempts: AttemptStore) -> None:
    job = Flaky(9)
    with pytest.raises(ConnectionError):
        retrying(attempts, max_tries=2)(job, "a")
    with pytest.raises(PersistentRetryExhausted) as raised:
        retrying(attempts, max_tries=2)(job, "a")
    assert job.calls == 2
    assert (raised.value.key, raised.value.attempts) == ("a", 2)
    retrying(attempts).reset("a")
    assert retrying(attempts, max_tries=2)(Flaky(0), "a") == "done a"


def test_what_is_not_to_be_retried_is_raised_and_not_counted(attempts: AttemptStore) -> None:
    job = Flaky(1)
    with pytest.raises(ConnectionError):
        retrying(attempts, max_tries=5, retry=retry_if_exception_type(KeyError))(job, "a")
    assert job.calls == 1
    assert attempts.load("a") is None


def test_options_of_tenacity_pass_through(attempts: AttemptStore) -> None:
    with pytest.raises(RetryError):
        retrying(attempts, max_tries=1, reraise=False)(Flaky(1), "a")
    assert retrying(attempts, max_tries=1, retry_error_callback=lambda _: "gave up")(Flaky(1), "b") == "gave up"
    record = attempts.load("b")
    assert record is not None
    assert record.exhausted


def test_a_record_can_be_kept_after_a_success(attempts: AttemptStore) -> None:
    retrying(attempts, max_tries=3, clear_on_success=False)(Flaky(1), "a")
    record = attempts.load("a")
    assert record is not None
    assert (record.attempts, record.exhausted) == (1, False)


def test_exhausted_records_are_pruned_by_their_first_attempt(attempts: AttemptStore) -> None:
    for key, at, exhausted in (("old", 100.0, True), ("new", 200.0, True), ("open", 100.0, False)):
        attempts.save(key, RetryRecord(3, at, exhausted))
    attempts.save("old", RetryRecord(4, 100.0, exhausted=True))

    assert attempts.count_exhausted_older_than(older_than=50.0, now=200.0) == 1
    assert attempts.prune_exhausted(older_than=50.0, now=200.0) == 1
    assert [attempts.load(key) is None for key in ("old", "new", "open")] == [True, False, False]
    assert attempts.prune_exhausted(older_than=50.0, now=200.0) == 0


def test_a_record_that_was_reset_is_not_pruned_for_its_former_self(attempts: AttemptStore) -> None:
    attempts.save("a", RetryRecord(3, 100.0, exhausted=True))
    attempts.delete("a")
    attempts.save("a", RetryRecord(1, 190.0))
    assert attempts.prune_exhausted(older_than=50.0, now=200.0) == 0
    assert attempts.load("a") == RetryRecord(1, 190.0)


def test_keys_may_be_of_any_length(attempts: AttemptStore) -> None:
    attempts.save("k" * 5_000, RetryRecord(1, 1.0))
    assert attempts.load("k" * 5_000) == RetryRecord(1, 1.0)
    assert attempts.load("k" * 5_001) is None


@pytest.mark.anyio
async def test_tasks_retry_the_same_way(attempts: AttemptStore) -> None:
    async def stop(state: RetryCallState) -> bool:
        return state.attempt_number >= 3

    retryer = PersistentAsyncRetrying(store=attempts, key="a", wait=wait_none(), stop=stop)
    assert await retryer(Flaky(2).later, "a") == "done a"
    assert retryer.get_record("a") is None
    job = Flaky(9)
    with pytest.raises(ConnectionError):
        await retryer(job.later, "a")
    with pytest.raises(PersistentRetryExhausted):
        await retryer(job.later, "a")
    assert job.calls == 3


@pytest.mark.anyio
async def test_a_task_that_keeps_its_record_keeps_it(attempts: AttemptStore) -> None:
    retryer = PersistentAsyncRetrying(store=attempts, key="a", wait=wait_none(), max_tries=3, clear_on_success=False)
    await retryer(Flaky(1).later, "a")
    assert retryer.get_record("a") is not None


class Task:
    def __init__(self, id: object) -> None:
        self.id = id


def test_keys_come_from_arguments_and_their_attributes() -> None:
    def run(task: object, *, job_id: str = "default") -> None:
        del task, job_id

    assert key_from_argument("job_id")(run, (1,), {"job_id": "j"}) == "j"
    assert key_from_argument("job_id")(run, (1,), {}) == "default"
    assert key_from_attr("task", "id", prefix="video")(run, (Task(7),), {}) == "video:7"
    assert idempotency_key_from_id("task")(run, (), {"task": Task("x")}) == "x"
    with pytest.raises(ValueError, match="nothing"):
        key_from_argument("nothing")(run, (1,), {})
    with pytest.raises(ValueError, match=r"task\.id"):
        idempotency_key_from_id("task")(run, (1,), {})


def test_a_decorated_function_shows_how_it_is_retried() -> None:
    store = MemoryAttemptStore()

    @persistent_retry(store=store, key_fn=key_from_argument("job_id"), max_tries=2, wait=wait_none())
    def run(job_id: str) -> str:
        """Run it."""
        raise ConnectionError(job_id)

    shown: Any = run
    assert (shown.__name__, shown.__doc__, shown.retry.key_fn is not None) == ("run", "Run it.", True)
    with pytest.raises(ConnectionError):
        run("a")
    with pytest.raises(ConnectionError):
        shown.retry_with(max_tries=5)("b")
    assert [one.attempts for key in "ab" if (one := store.load(key))] == [2, 5]


@pytest.mark.anyio
async def test_a_decorated_coroutine_function() -> None:
    @persistent_async_retry(store=MemoryAttemptStore(), key="a", max_tries=2, wait=wait_none())
    async def run(job_id: str) -> str:
        return f"done {job_id}"

    assert await run("a") == "done a"


def test_a_copy_keeps_what_it_is_not_told() -> None:
    store = MemoryAttemptStore()
    retryer = PersistentRetrying(store=store, key="a", max_tries=2, wait=wait_none(), clear_on_success=False)
    copied = retryer.copy(stop=stop_after_attempt(3))
    assert (copied.key, copied.clear_on_success) == ("a", False)
    with pytest.raises(ConnectionError):
        copied(Flaky(9), "a")
    assert (record := store.load("a")) is not None
    assert record.attempts == 3


@pytest.mark.parametrize(
    "options",
    [
        {"max_tries": 1, "stop": stop_after_attempt(1), "key": "a"},
        {"max_tries": 0, "key": "a"},
        {"max_tries": True, "key": "a"},
        {"store": MemoryAttemptStore(), "store_path": "x", "key": "a"},
    ],
)
def test_options_that_disagree_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"max_tries|store"):
        PersistentRetrying(**options)


def test_a_retryer_needs_a_key() -> None:
    with pytest.raises(ValueError, match="key"):
        PersistentRetrying(store=MemoryAttemptStore())(Flaky(0), "a")
    run = persistent_retry(store=MemoryAttemptStore(), max_tries=3)(str.upper)
    with pytest.raises(ValueError, match="key"):
        run("a")
    keyed: Any = run
    assert keyed.retry_with(key="a")("a") == "A"


@pytest.mark.parametrize(
    "make",
    [
        lambda: key_from_argument(""),
        lambda: key_from_attr("", "id"),
        lambda: key_from_attr("task", ""),
        lambda: key_from_attr("task", "id", prefix=""),
        lambda: idempotency_key_from_id(""),
        lambda: idempotency_key_from_id("task", prefix=""),
    ],
)
def test_a_key_cannot_come_from_nothing(make: Any) -> None:
    with pytest.raises(ValueError, match="cannot be empty"):
        make()


class TestTheDefaultStore:
    @pytest.fixture(autouse=True)
    def _restored(self) -> Iterator[None]:
        yield
        close_default_store(all_threads=True)
        configure_default_store()

    def test_it_is_the_store_of_every_handle_without_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOLDFAST_URL", "memory://retries-by-default")
        with pytest.raises(ConnectionError):
            PersistentRetrying(key="a", max_tries=1)(Flaky(1), "a")
        record = URLAttemptStore("memory://retries-by-default").load("a")
        assert record is not None
        assert record.exhausted
        client_for("memory://retries-by-default").close()

    def test_it_can_be_chosen(self) -> None:
        chosen = MemoryAttemptStore()
        configure_default_store(chosen)
        with pytest.raises(ConnectionError):
            PersistentRetrying(key="a", max_tries=1)(Flaky(1), "a")
        assert chosen.load("a") is not None

    def test_a_factory_makes_one_a_thread_which_is_closed_on_request(self) -> None:
        made: list[OwnStore] = []

        def make() -> OwnStore:
            made.append(OwnStore())
            return made[-1]

        configure_default_store_factory(make)
        for _ in range(2):
            with pytest.raises(ConnectionError):
                PersistentRetrying(key="a", max_tries=1, clear_on_success=False).copy(key="b")(Flaky(1), "a")
            PersistentRetrying(key="b").reset("b")
        assert len(made) == 1
        made[0].save("x", RetryRecord(1, 1.0))
        close_default_store()
        assert made[0].records == {}
        PersistentRetrying(key="c").reset("c")
        assert len(made) == 2
