"""Workers: one message a call, kept while it takes, retried, settled, paced."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tenacity import retry_if_exception_type, stop_after_attempt, wait_none

from holdfast.errors import ClaimLost
from holdfast.surfaces.localqueue import (
    AtMostOnceDelivery,
    PersistentQueue,
    PersistentWorkerConfig,
    QueueSpec,
    URLQueueStore,
    persistent_async_worker,
    persistent_worker,
)
from holdfast.surfaces.localqueue.retry import MemoryAttemptStore, PersistentRetryExhausted, RetryRecord, URLAttemptStore
from holdfast.testing.clock import FakeClock
from tests.runners import Runner, waiting_on

LEASE_S = 30.0


@pytest.fixture
def jobs(store: URLQueueStore) -> PersistentQueue[Any]:
    return PersistentQueue("jobs", store=store)


def failing(times: int, error: type[Exception] = ConnectionError) -> Callable[..., Any]:
    """A handler that fails so many times; it counts its calls."""

    def handle(value: Any, *args: Any, **kwargs: Any) -> Any:
        handle.calls += 1  # type: ignore[attr-defined] # of this function
        if handle.calls <= times:  # type: ignore[attr-defined] # as above
            raise error("down")
        return [value, *args, *kwargs.values()]

    handle.calls = 0  # type: ignore[attr-defined] # as above
    return handle


def test_a_call_handles_one_message_with_its_value_and_the_arguments_of_the_call(jobs: PersistentQueue[Any]) -> None:
    jobs.put("a")
    jobs.put("b")

    @persistent_worker(jobs)
    def handle(value: str, greeting: str, *, end: str) -> str:
        """Greet."""
        return f"{greeting} {value}{end}"

    assert handle("hello", end="!") == "hello a!"
    assert (handle.__name__, handle.__doc__) == ("handle", "Greet.")
    assert jobs.stats().total == 1


@pytest.mark.anyio
@pytest.mark.usefixtures("closed_in_loop")
async def test_a_coroutine_function_can_be_a_worker(jobs: PersistentQueue[Any]) -> None:
    jobs.put("a")
    tries: list[str] = []

    @persistent_async_worker(jobs, max_tries=2, wait=wait_none(), worker_id="w1")
    async def handle(value: str) -> str:
        tries.append(value)
        if len(tries) == 1:
            raise ConnectionError
        return value.upper()

    assert await handle() == "A"
    assert tries == ["a", "a"]
    assert jobs.stats().total == 0
    assert jobs.stats().leases_by_worker_id == {"w1": 1}
    jobs.put("b")
    tries.clear()
    with pytest.raises(ConnectionError):
        await persistent_async_worker(jobs, max_tries=1)(failing_later)()
    assert [one.value for one in jobs.dead_letters()] == ["b"]


async def failing_later(value: str) -> None:
    raise ConnectionError(value)


def test_the_worker_is_named_in_the_lease_and_in_the_stats(jobs: PersistentQueue[Any]) -> None:
    jobs.put("a")

    @persistent_worker(jobs, worker_id="w1")
    def handle(_: str) -> None:
        assert jobs.stats().by_worker_id == {"w1": 1}

    handle()
    assert jobs.stats().leases_by_worker_id == {"w1": 1}
    assert list(jobs.stats().last_seen_by_worker_id) == ["w1"]


class TestFailures:
    def test_retries_happen_within_the_call_and_are_counted_in_the_store(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("a")
        handler = failing(2)
        assert persistent_worker(jobs, max_tries=3, wait=wait_none())(handler)() == ["a"]
        assert handler.calls == 3  # type: ignore[attr-defined] # see failing
        assert jobs.stats().total == 0

    def test_attempts_of_a_worker_that_died_count(self, jobs: PersistentQueue[Any]) -> None:
        message = jobs.put("a")
        URLAttemptStore(jobs.client).save(message.id, RetryRecord(2, 1.0))
        handler = failing(9)
        with pytest.raises(ConnectionError):
            persistent_worker(jobs, max_tries=3, wait=wait_none())(handler)()
        assert handler.calls == 1  # type: ignore[attr-defined] # see failing

    def test_a_message_whose_tries_are_used_up_is_dead_with_its_error(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("a")
        with pytest.raises(ConnectionError):
            persistent_worker(jobs, max_tries=2, wait=wait_none())(failing(9))()
        (dead,) = jobs.dead_letters()
        assert dead.last_error == {"type": "ConnectionError", "module": "builtins", "message": "down"}

    def test_it_is_released_with_a_delay_where_that_is_asked_for(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        jobs.put("a")
        config = PersistentWorkerConfig(max_tries=1, dead_letter_on_failure=False, release_delay=30)
        worker = persistent_worker(jobs, config=config)(failing(1))
        with pytest.raises(ConnectionError):
            worker()
        assert (jobs.stats().delayed, jobs.stats().dead) == (1, 0)
        clock.advance(30.0)
        assert worker() == ["a"]

    @pytest.mark.parametrize("error", [ImportError, ModuleNotFoundError, NameError])
    def test_what_cannot_be_helped_is_dead_whatever_is_asked_for(self, jobs: PersistentQueue[Any], error: type[Exception]) -> None:
        jobs.put("a")
        with pytest.raises(error):
            persistent_worker(jobs, dead_letter_on_failure=False, stop=stop_after_attempt(1))(failing(9, error))()
        assert jobs.stats().dead == 1

    def test_an_interrupted_handler_gives_its_message_back_and_burns_nothing(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("a")

        @persistent_worker(jobs, max_tries=1)
        def handle(_: str) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            handle()
        assert (jobs.stats().ready, jobs.stats().dead) == (1, 0)

    @pytest.mark.anyio
    @pytest.mark.usefixtures("closed_in_loop")
    async def test_a_cancelled_worker_gives_its_message_back(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("a")
        began = asyncio.Event()

        @persistent_async_worker(jobs)
        async def handle(_: str) -> None:
            began.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(handle())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (jobs.stats().ready, jobs.stats().inflight) == (1, 0)

    def test_delivered_at_most_once_a_failure_loses_the_message(self, store: URLQueueStore) -> None:
        jobs = PersistentQueue[str]("jobs", store=store, delivery_policy=AtMostOnceDelivery())
        jobs.put("a")
        with pytest.raises(ConnectionError):
            persistent_worker(jobs, max_tries=1)(failing(9))()
        assert jobs.stats().total == 0
        jobs.put("b")
        assert persistent_worker(jobs, max_tries=1)(failing(0))() == ["b"]


class TestTheLease:
    def test_a_handler_that_takes_ten_leases_keeps_its_message(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        message = jobs.put("a")

        @persistent_worker(jobs)
        def handle(_: str) -> None:
            for _third in range(30):
                clock.advance(LEASE_S / 3)
                # The renewal runs beside the handler: wait until it is seen.
                runner.until(lambda: leased_until(jobs, message.id) == clock.wall_us() / 1_000_000 + LEASE_S)

        with Runner() as runner:
            handle()
        assert jobs.stats().total == 0

    def test_a_worker_that_lost_its_message_settles_nothing(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        message = jobs.put("a")

        @persistent_worker(jobs, max_tries=5, wait=wait_none())
        def handle(_: str) -> None:
            jobs.client.keepalive.close()
            clock.advance(LEASE_S)
            raise ConnectionError

        with pytest.raises(ClaimLost):
            handle()
        found = jobs.inspect(message.id)
        assert found is not None
        assert found.state == "ready"
        assert jobs.stats().dead == 0

    @pytest.mark.parametrize(("options", "deaths"), [({}, 5), ({"max_tries": 2}, 2)])
    def test_a_message_that_kills_its_workers_is_dead_at_its_budget(
        self, jobs: PersistentQueue[Any], clock: FakeClock, options: dict[str, Any], deaths: int
    ) -> None:
        jobs.put("poison")
        worker = persistent_worker(jobs, **options)(failing(0))
        for _ in range(deaths):
            jobs.get_message(leased_by="a worker that dies")
            clock.advance(LEASE_S)
        jobs.put("good")
        assert worker() == ["good"]
        assert [one.value for one in jobs.dead_letters()] == ["poison"]


class TestPace:
    def test_messages_are_begun_no_faster_than_asked(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        jobs.put("a")
        jobs.put("b")
        worker = persistent_worker(jobs, min_interval=10.0)(failing(0))
        worker()

        with Runner() as runner:
            second = runner.start(worker)
            runner.until(lambda: waiting_on(jobs.client.store, "pause") == 1)
            assert jobs.qsize() == 1
            clock.advance(10.0)
            assert second.result() == ["b"]

    def test_failures_in_a_row_pause_the_worker(self, jobs: PersistentQueue[Any], clock: FakeClock) -> None:
        for value in ("a", "b", "c"):
            jobs.put(value)
        config = PersistentWorkerConfig(max_tries=1, circuit_breaker_failures=2, circuit_breaker_cooldown=60.0)
        worker = persistent_worker(jobs, config=config)(failing(2))
        for _ in range(2):
            with pytest.raises(ConnectionError):
                worker()
        with Runner() as runner:
            third = runner.start(worker)
            runner.until(lambda: waiting_on(jobs.client.store, "pause") == 1)
            assert jobs.qsize() == 1
            clock.advance(60.0)
            assert third.result() == ["c"]

    def test_what_cannot_be_helped_does_not_open_the_breaker(self, jobs: PersistentQueue[Any]) -> None:
        jobs.put("a")
        jobs.put("b")
        config = PersistentWorkerConfig(max_tries=1, circuit_breaker_failures=1, circuit_breaker_cooldown=60.0)
        worker = persistent_worker(jobs, config=config)(failing(1, ImportError))
        with pytest.raises(ImportError):
            worker()
        assert worker() == ["b"]


class TestConfiguration:
    def test_the_call_wins_over_the_config_and_that_over_the_queue(self, store: URLQueueStore) -> None:
        jobs = PersistentQueue[str]("jobs", store=store, retry_defaults={"max_tries": 2, "wait": wait_none()})
        for options, calls in (
            ({}, 2),
            ({"config": PersistentWorkerConfig(max_tries=3)}, 3),
            ({"config": PersistentWorkerConfig(max_tries=3), "max_tries": 4}, 4),
            ({"stop": stop_after_attempt(5)}, 5),
        ):
            jobs.put("a")
            handler = failing(9)
            with pytest.raises(ConnectionError):
                persistent_worker(jobs, **options)(handler)()
            assert handler.calls == calls  # type: ignore[attr-defined] # see failing

    def test_a_spec_describes_queue_and_worker(self, store: URLQueueStore) -> None:
        spec = QueueSpec("jobs").with_retry(max_retries=2, wait=wait_none()).with_dead_letter_on_failure(False).with_release_delay(5)
        jobs = spec.build_queue(store=store)
        jobs.put("a")
        handler = failing(9)
        with pytest.raises(ConnectionError):
            persistent_worker(jobs)(handler)()
        assert handler.calls == 2  # type: ignore[attr-defined] # see failing
        assert jobs.stats().delayed == 1

    def test_attempts_are_kept_where_the_worker_is_told(self, jobs: PersistentQueue[Any]) -> None:
        attempts = MemoryAttemptStore()
        message = jobs.put("a")
        seen: list[RetryRecord | None] = []

        @persistent_worker(jobs, store=attempts, max_tries=3, wait=wait_none(), retry=retry_if_exception_type(ConnectionError))
        def handle(_: str) -> None:
            seen.append(attempts.load(message.id))
            if len(seen) < 3:
                raise ConnectionError

        handle()
        assert [one and one.attempts for one in seen] == [None, 1, 2]
        assert attempts.load(message.id) is None

    @pytest.mark.parametrize(
        "options", [{"key": "a"}, {"max_tries": 0}, {"dead_letter_on_failure": True, "dead_letter_on_exhaustion": False}]
    )
    def test_bad_options_are_refused_before_a_message_is_in_hand(self, jobs: PersistentQueue[Any], options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=r"key|max_tries|dead_letter"):
            persistent_worker(jobs, **options)(failing(0))


def leased_until(jobs: PersistentQueue[Any], message_id: str) -> float:
    found = jobs.inspect(message_id)
    return found.leased_until or 0.0 if found else 0.0


@pytest.mark.parametrize("died", [False, True])
def test_attempts_that_were_used_up_count_for_a_message_that_failed_since(
    jobs: PersistentQueue[Any],
    clock: FakeClock,
    died: bool,  # noqa: FBT001 - by name
) -> None:
    """Of a message that was requeued they tell of a life before: localqueue kept them, and an import brings them along."""
    message = jobs.put("a")
    URLAttemptStore(jobs.client).save(message.id, RetryRecord(2, 1.0, exhausted=True))
    if died:
        jobs.get_message()
        clock.advance(30.0)
    handle = persistent_worker(jobs, max_tries=2)(str.upper)
    if not died:
        assert handle() == "A"
        return
    with pytest.raises(PersistentRetryExhausted):
        handle()
    assert jobs.stats().dead == 1
