"""Each block of localqueue's documented API runs as it is documented, on every store; only the import differs.

A block is a function; what it mentions and does not make (a queue, a function, a task) it gets. Blocks that name no store use that of
`HOLDFAST_URL`.
"""

import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import client_for
from holdfast.surfaces import localqueue
from holdfast.surfaces.localqueue import PersistentQueue
from tests.stores_by_name import url_of

STORES = ["memory", "sqlite", "lmdb", "redis", "postgres"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    url = url_of(request.param, tmp_path)
    monkeypatch.setenv("HOLDFAST_URL", url)
    yield url
    client_for(url).close()


@pytest.fixture
async def closed_in_loop(url: str) -> AsyncIterator[None]:
    """Connections of tasks belong to their loop, and are closed in it."""
    yield
    await client_for(url).aio.close()


@pytest.fixture
def queue(url: str) -> PersistentQueue[Any]:
    queue = PersistentQueue[Any]("jobs")
    queue.put({"image_id": "img-1"})
    return queue


@dataclass
class VideoTask:
    id: str


class TestWorkers:
    def test_a_configuration(self, queue: PersistentQueue[Any]) -> None:
        from tenacity import retry_if_exception_type, wait_fixed

        from holdfast.surfaces.localqueue import PersistentWorkerConfig

        config = PersistentWorkerConfig(
            max_tries=3,
            wait=wait_fixed(1),
            retry=retry_if_exception_type(ConnectionError),
            dead_letter_on_failure=False,
            release_delay=30,
        )

        assert config.retry_kwargs["max_tries"] == 3
        assert (config.dead_letter_on_failure, config.dead_letter_on_exhaustion, config.release_delay) == (False, False, 30)

        @localqueue.persistent_worker(queue, config=config)
        def handle(payload: dict[str, str]) -> None:
            raise ValueError(payload)

        with pytest.raises(ValueError, match="img-1"):
            handle()
        assert queue.stats().delayed == 1

    def test_a_worker(self, queue: PersistentQueue[Any]) -> None:
        from holdfast.surfaces.localqueue import PersistentWorkerConfig, persistent_worker

        config = PersistentWorkerConfig(max_tries=3)
        seen = []

        @persistent_worker(queue, config=config)
        def handle(payload: dict[str, str]) -> None:
            seen.append(payload)

        handle()
        assert seen == [{"image_id": "img-1"}]
        assert queue.stats().total == 0

    @pytest.mark.anyio
    @pytest.mark.usefixtures("closed_in_loop")
    async def test_an_async_worker(self, queue: PersistentQueue[Any]) -> None:
        from holdfast.surfaces.localqueue import PersistentWorkerConfig, persistent_async_worker

        seen = []

        @persistent_async_worker(queue, config=PersistentWorkerConfig(max_tries=3))
        async def handle(payload: dict[str, str]) -> None:
            seen.append(payload)

        await handle()
        assert seen == [{"image_id": "img-1"}]


class TestRetries:
    def test_a_decorated_function(self, url: str) -> None:
        from holdfast.surfaces.localqueue.retry import key_from_argument, persistent_retry

        seen = []

        @persistent_retry(key_fn=key_from_argument("job_id"), max_tries=3)
        def run(job_id: str) -> None:
            seen.append(job_id)

        run("job:1")
        assert seen == ["job:1"]

    @pytest.mark.anyio
    @pytest.mark.usefixtures("closed_in_loop")
    async def test_a_decorated_coroutine_function(self, url: str) -> None:
        from holdfast.surfaces.localqueue.retry import key_from_argument, persistent_async_retry

        seen = []

        @persistent_async_retry(key_fn=key_from_argument("job_id"), max_tries=3)
        async def run(job_id: str) -> None:
            seen.append(job_id)

        await run("job:1")
        assert seen == ["job:1"]

    def test_a_key_from_a_named_argument(self, url: str) -> None:
        from holdfast.surfaces.localqueue.retry import key_from_argument, persistent_retry

        @persistent_retry(key_fn=key_from_argument("job_id"))
        def run(*, job_id: str) -> str:
            return job_id

        assert run(job_id="job:1") == "job:1"

    def test_a_key_from_an_attribute(self, url: str) -> None:
        from holdfast.surfaces.localqueue.retry import PersistentRetrying, key_from_attr, persistent_retry

        @persistent_retry(key_fn=key_from_attr("task", "id", prefix="video"))
        def run(task: VideoTask) -> object:
            return PersistentRetrying(key="any").get_record(f"video:{task.id}")

        assert run(VideoTask("v1")) is None

    def test_a_key_from_an_id(self, url: str) -> None:
        from holdfast.surfaces.localqueue.retry import PersistentRetrying, idempotency_key_from_id, persistent_retry

        @persistent_retry(key_fn=idempotency_key_from_id("task", prefix="video"), max_tries=1)
        def run(task: VideoTask) -> None:
            raise ConnectionError(task.id)

        with pytest.raises(ConnectionError):
            run(VideoTask("v1"))
        record = PersistentRetrying(key="any").get_record("video:v1")
        assert record is not None
        assert (record.attempts, record.exhausted) == (1, True)

    def test_a_retryer(self, url: str) -> None:
        from holdfast.surfaces.localqueue.retry import PersistentRetrying, key_from_argument

        def fn(job_id: str) -> str:
            return job_id

        retryer = PersistentRetrying(key_fn=key_from_argument("job_id"), max_tries=5)
        assert retryer(fn, "job:1") == "job:1"

    @pytest.mark.anyio
    @pytest.mark.usefixtures("closed_in_loop")
    async def test_an_async_retryer(self, url: str) -> None:
        from holdfast.surfaces.localqueue.retry import PersistentAsyncRetrying, key_from_argument

        async def fn(job_id: str) -> str:
            return job_id

        retryer = PersistentAsyncRetrying(key_fn=key_from_argument("job_id"), max_tries=5)
        assert await retryer(fn, "job:1") == "job:1"


class TestAttemptStores:
    """Made, not opened: the documented paths are not there."""

    def test_one_of_ones_own(self) -> None:
        from holdfast.surfaces.localqueue.retry import PersistentRetrying, RetryRecord

        class AttemptStore:
            def load(self, key: str) -> RetryRecord | None: ...
            def save(self, key: str, record: RetryRecord) -> None: ...
            def delete(self, key: str) -> None: ...
            def prune_exhausted(self, *, older_than: float, now: float) -> int:
                return 0

        retryer = PersistentRetrying(store=AttemptStore(), key="a", max_tries=1)  # type: ignore[arg-type] # as documented, without counting
        assert retryer(lambda: "done") == "done"

    def test_lmdb(self) -> None:
        from holdfast.surfaces.localqueue.retry import LMDBAttemptStore

        store = LMDBAttemptStore("/var/lib/my-worker/retries")
        assert store.load is not None

    def test_sqlite(self) -> None:
        from holdfast.surfaces.localqueue.retry import SQLiteAttemptStore

        store = SQLiteAttemptStore("/var/lib/my-worker/retries.sqlite3")
        assert store.load is not None


QUEUE_OPTIONS = {
    "name": None,
    "store": None,
    "store_path": None,
    "lease_timeout": 30.0,
    "lease_policy": None,
    "maxsize": 0,
    "retry_defaults": None,
    "semantics": None,
    "locality_policy": None,
    "acknowledgement_policy": None,
    "dead_letter_policy": None,
    "deduplication_policy": None,
    "consumption_policy": None,
    "dispatch_policy": None,
    "notification_policy": None,
    "delivery_policy": None,
    "ordering_policy": None,
    "routing_policy": None,
    "subscription_policy": None,
    "backpressure": None,
    "policy_set": None,
}
EMPTY = inspect.Parameter.empty
METHODS: dict[str, dict[str, object]] = {
    "put": {"item": EMPTY, "block": True, "timeout": None, "delay": 0.0, "priority": 0, "dedupe_key": None},
    "put_nowait": {"item": EMPTY},
    "get": {"block": True, "timeout": None, "leased_by": None},
    "get_nowait": {},
    "get_message": {"block": True, "timeout": None, "leased_by": None},
    "inspect": {"message_id": EMPTY},
    "ack": {"message": EMPTY},
    "release": {"message": EMPTY, "delay": 0.0, "error": None},
    "dead_letter": {"message": EMPTY, "error": None},
    "task_done": {},
    "join": {},
    "qsize": {},
    "stats": {},
    "dead_letters": {"limit": None},
    "requeue_dead": {"message": EMPTY, "delay": 0.0},
    "prune_dead_letters": {"older_than": EMPTY},
    "count_dead_letters_older_than": {"older_than": EMPTY},
    "empty": {},
    "full": {},
    "purge": {},
    "record_worker_heartbeat": {"worker_id": EMPTY},
    "subscriber_queue": {"subscriber": EMPTY},
    "subscriber_queue_name": {"subscriber": EMPTY},
}


def test_a_queue_takes_the_documented_options() -> None:
    parameters = inspect.signature(PersistentQueue).parameters
    assert {name: parameters[name].default for name in QUEUE_OPTIONS} == QUEUE_OPTIONS


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_the_documented_arguments(name: str) -> None:
    parameters = inspect.signature(getattr(PersistentQueue, name)).parameters
    assert {one: parameters[one].default for one in METHODS[name]} == METHODS[name]


def test_the_defaults_are_the_documented_policies(url: str) -> None:
    queue = PersistentQueue[Any]("jobs")
    is_remote = url.startswith(("redis", "postgresql"))
    assert queue.semantics == replace(localqueue.LOCAL_AT_LEAST_ONCE, locality="remote" if is_remote else "local")
    assert queue.locality_policy == (localqueue.RemoteQueuePlacement() if is_remote else localqueue.LOCAL_QUEUE_PLACEMENT)
    assert queue.acknowledgement_policy == localqueue.EXPLICIT_ACKNOWLEDGEMENT
    assert queue.dead_letter_policy == localqueue.DEAD_LETTER_QUEUE
    assert queue.deduplication_policy == localqueue.DEDUPE_KEY_SUPPORT
    assert queue.consumption_policy == localqueue.PULL_CONSUMPTION
    assert queue.dispatch_policy == localqueue.NO_DISPATCHER
    assert queue.notification_policy == localqueue.NO_NOTIFICATION
    assert queue.delivery_policy == localqueue.AT_LEAST_ONCE_DELIVERY
    assert queue.ordering_policy == localqueue.FIFO_READY_ORDERING
    assert queue.routing_policy == localqueue.POINT_TO_POINT_ROUTING
    assert queue.subscription_policy == localqueue.NO_SUBSCRIPTIONS
    assert queue.backpressure == localqueue.BoundedBackpressure(maxsize=0)
    assert queue.lease_policy == localqueue.FixedLeaseTimeout(timeout=30.0)


FIELDS = {
    "QueueMessage": "id value queue state attempts created_at available_at priority leased_until leased_by dedupe_key attempt_history "
    "last_error failed_at",
    "QueueStats": "ready delayed inflight dead total by_worker_id leases_by_worker_id last_seen_by_worker_id oldest_ready_age_seconds "
    "oldest_inflight_age_seconds average_inflight_age_seconds",
    "IdempotencyRecord": "status first_seen_at completed_at result_key metadata",
    "RetryRecord": "attempts first_attempt_at exhausted",
    "EffectivelyOnceDelivery": "idempotency_store result_policy commit_policy",
    "ReturnStoredResult": "result_store",
    "TransactionalOutboxCommit": "outbox_store",
    "TwoPhaseCommit": "prepare_store commit_store",
    "SagaCommit": "saga_store",
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_record_has_the_documented_fields(name: str) -> None:
    assert {*FIELDS[name].split()} <= {one.name for one in fields(getattr(localqueue, name))}


NAMES = """
PersistentQueue QueueSemantics QueuePolicySet QoS QueueSpec LocalityPolicy LocalQueuePlacement RemoteQueuePlacement LeasePolicy
FixedLeaseTimeout AcknowledgementPolicy ExplicitAcknowledgement DeadLetterPolicy DeadLetterQueue DeduplicationPolicy DedupeKeySupport
NoDeduplication AtLeastOnceDelivery AtMostOnceDelivery EffectivelyOnceDelivery NoResultPolicy ReturnStoredResult CommitPolicy
LocalAtomicCommit TransactionalOutboxCommit TwoPhaseCommit SagaCommit PullConsumption PushConsumption DispatchPolicy NoDispatcher
CallbackDispatcher NotificationPolicy NoNotification CallbackNotification InProcessNotification PointToPointRouting
PublishSubscribeRouting SubscriptionPolicy NoSubscriptions StaticFanoutSubscriptions FifoReadyOrdering PriorityOrdering
BestEffortOrdering BoundedBackpressure RejectingBackpressure PersistentWorkerConfig QueueMessage QueueStats persistent_worker
persistent_async_worker QueueStore SQLiteQueueStore LMDBQueueStore MemoryQueueStore QueueStoreLockedError AsyncioNotification
WebSocketNotification TWO_PHASE_COMMIT configure_default_store configure_default_store_factory IdempotencyStoreLockedError
ResultStoreLockedError subscriber_queue_name
"""
SUBMODULES = {
    "results": "ResultStore MemoryResultStore SQLiteResultStore LMDBResultStore",
    "idempotency": "IdempotencyRecord IdempotencyStore MemoryIdempotencyStore SQLiteIdempotencyStore LMDBIdempotencyStore",
    "retry": "persistent_retry persistent_async_retry key_from_argument key_from_attr idempotency_key_from_id PersistentRetrying "
    "PersistentAsyncRetrying PersistentRetryExhausted RetryRecord close_default_store AttemptStore LMDBAttemptStore SQLiteAttemptStore "
    "MemoryAttemptStore AttemptStoreLockedError",
}


@pytest.mark.parametrize("name", NAMES.split())
def test_a_documented_name_is_there(name: str) -> None:
    assert hasattr(localqueue, name)
    assert name in localqueue.__all__


@pytest.mark.parametrize(("module", "names"), SUBMODULES.items())
def test_a_submodule_has_its_documented_names(module: str, names: str) -> None:
    from importlib import import_module

    submodule = import_module(f"holdfast.surfaces.localqueue.{module}")
    assert {*names.split()} <= {*submodule.__all__}
    assert all(hasattr(localqueue, name) for name in submodule.__all__)
