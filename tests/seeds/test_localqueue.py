"""Each block of localqueue's documented API runs as it is documented, on every store; only the import differs.

What a block mentions and does not make (a queue, a function, a task) it gets. Blocks that name no store use that of
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
from holdfast.surfaces.localqueue.retry import URLAttemptStore
from tests.seeds.blocks import run, run_inside
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
        config = run("localqueue", "A configuration")["config"]
        assert config.retry_kwargs["max_tries"] == 3
        assert (config.dead_letter_on_failure, config.dead_letter_on_exhaustion, config.release_delay) == (False, False, 30)

        @localqueue.persistent_worker(queue, config=config)
        def handle(payload: dict[str, str]) -> None:
            raise ValueError(payload)

        with pytest.raises(ValueError, match="img-1"):
            handle()
        assert queue.stats().delayed == 1

    def test_a_worker(self, queue: PersistentQueue[Any]) -> None:
        names = run("localqueue", "A worker", queue=queue)
        assert names["handle"]() is None
        assert queue.stats().total == 0

    @pytest.mark.anyio
    @pytest.mark.usefixtures("closed_in_loop")
    async def test_an_async_worker(self, queue: PersistentQueue[Any]) -> None:
        """Documented by its signature alone."""
        seen = []

        @localqueue.persistent_async_worker(queue, config=localqueue.PersistentWorkerConfig(max_tries=3))
        async def handle(payload: dict[str, str]) -> None:
            seen.append(payload)

        await handle()
        assert seen == [{"image_id": "img-1"}]


class TestRetries:
    @pytest.mark.parametrize(
        ("title", "args", "kwargs", "key"),
        [
            ("A retried function", ("job:1",), {}, "job:1"),
            ("A key from a named argument", (), {"job_id": "job:1"}, "job:1"),
            ("A key from an attribute", (VideoTask("v1"),), {}, "video:v1"),
            ("A key from an id", (VideoTask("v1"),), {}, "video:v1"),
        ],
    )
    def test_a_decorated_function_is_refused_under_its_key_when_that_is_exhausted(
        self, url: str, title: str, args: tuple[Any, ...], kwargs: dict[str, Any], key: str
    ) -> None:
        function = run("localqueue", title, VideoTask=VideoTask)["run"]
        assert function(*args, **kwargs) is None
        URLAttemptStore(client_for(url)).save(key, localqueue.RetryRecord(3, 1.0, exhausted=True))
        with pytest.raises(localqueue.PersistentRetryExhausted) as refused:
            function(*args, **kwargs)
        assert (refused.value.key, refused.value.attempts) == (key, 3)

    @pytest.mark.anyio
    @pytest.mark.usefixtures("closed_in_loop")
    async def test_a_decorated_coroutine_function(self, url: str) -> None:
        function = run("localqueue", "A retried coroutine function")["run"]
        assert await function("job:1") is None
        URLAttemptStore(client_for(url)).save("job:1", localqueue.RetryRecord(3, 1.0, exhausted=True))
        with pytest.raises(localqueue.PersistentRetryExhausted):
            await function("job:1")

    def test_a_retryer(self, url: str) -> None:
        seen: list[str] = []

        def fn(job_id: str) -> None:
            seen.append(job_id)

        retryer = run("localqueue", "A retryer", fn=fn)["retryer"]
        assert seen == ["job:1"]
        assert retryer.get_record("job:1") is None

    @pytest.mark.anyio
    @pytest.mark.usefixtures("closed_in_loop")
    async def test_an_async_retryer(self, url: str) -> None:
        seen: list[str] = []

        async def fn(job_id: str) -> None:
            seen.append(job_id)

        await run_inside("localqueue", "An async retryer", fn=fn)
        assert seen == ["job:1"]


class TestAttemptStores:
    def test_one_of_ones_own(self) -> None:
        names = run("localqueue", "An attempt store of one's own", RetryRecord=localqueue.RetryRecord)
        retryer = localqueue.PersistentRetrying(store=names["AttemptStore"](), key="a", max_tries=1)
        assert retryer(lambda: "done") == "done"

    @pytest.mark.parametrize("title", ["Attempts in LMDB", "Attempts in SQLite"])
    def test_a_store_makes_the_folder_it_is_in(self, title: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The documented path is one of the whole machine, which a test leaves alone."""
        made: list[str] = []
        monkeypatch.setattr(Path, "mkdir", lambda path, **_: made.append(str(path)))
        assert isinstance(run("localqueue", title)["store"], URLAttemptStore)
        assert made == ["/var/lib/my-worker"]


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
