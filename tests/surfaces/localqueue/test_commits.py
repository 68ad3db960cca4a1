"""Effectively once: ledger, results and envelopes, in one step with the acknowledgement where they are in one store."""

import logging
from typing import Any

import pytest
from tenacity import wait_none

from holdfast.surfaces.localqueue import (
    CommitPolicy,
    EffectivelyOnceDelivery,
    IdempotencyRecord,
    MemoryIdempotencyStore,
    MemoryQueueStore,
    MemoryResultStore,
    PersistentQueue,
    ReturnStoredResult,
    SagaCommit,
    TransactionalOutboxCommit,
    TwoPhaseCommit,
    URLIdempotencyStore,
    URLQueueStore,
    URLResultStore,
    persistent_async_worker,
    persistent_worker,
    relay_commits,
    relay_commits_async,
)
from holdfast.surfaces.localqueue.policies.commits import LOCAL_ATOMIC_COMMIT, NO_RESULT_POLICY, ResultPolicy
from holdfast.testing.clock import FakeClock

KEY = "dedupe:jobs:k"


class OwnResults:
    """A user's own result store, as the protocol documents it."""

    def __init__(self, fails_for: str = "nothing") -> None:
        self.values: dict[str, Any] = {}
        self.fails_for = fails_for

    def load(self, key: str) -> Any | None:
        return self.values.get(key)

    def save(self, key: str, value: Any) -> None:
        if key.startswith(self.fails_for):
            raise OSError("the store is away")
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values.pop(key, None)


class OwnLedger:
    """A user's own ledger, as the protocol documents it."""

    def __init__(self) -> None:
        self.records: dict[str, IdempotencyRecord] = {}

    def load(self, key: str) -> IdempotencyRecord | None:
        return self.records.get(key)

    def save(self, key: str, record: IdempotencyRecord) -> None:
        self.records[key] = record

    def delete(self, key: str) -> None:
        self.records.pop(key, None)

    def prune_completed(self, *, older_than: float, now: float) -> int:
        raise NotImplementedError

    def count_completed_older_than(self, *, older_than: float, now: float) -> int:
        raise NotImplementedError


def once(
    store: URLQueueStore,
    *,
    ledger: Any = None,
    results: ResultPolicy = NO_RESULT_POLICY,
    commits: CommitPolicy = LOCAL_ATOMIC_COMMIT,
    name: str = "jobs",
) -> PersistentQueue[Any]:
    delivery = EffectivelyOnceDelivery(idempotency_store=ledger, result_policy=results, commit_policy=commits)
    return PersistentQueue(name, store=store, delivery_policy=delivery)


def worker(queue: PersistentQueue[Any], handler: Any = str.upper) -> Any:
    return persistent_worker(queue, max_tries=1)(handler)


class TestLedger:
    @pytest.mark.parametrize("kind", ["same store", "another store", "own"])
    def test_a_key_that_succeeded_is_not_handled_again(self, store: URLQueueStore, kind: str) -> None:
        ledgers = {"same store": URLIdempotencyStore(store.client), "another store": MemoryIdempotencyStore(), "own": OwnLedger()}
        ledger: Any = ledgers[kind]
        jobs = once(store, ledger=ledger, results=ReturnStoredResult())
        calls: list[str] = []

        def count(value: str) -> dict[str, int]:
            calls.append(value)
            return {"n": len(calls)}

        handle = worker(jobs, count)

        for _ in range(2):
            jobs.put("work", dedupe_key="k")
            assert handle() == {"n": 1}

        assert calls == ["work"]
        assert jobs.stats().total == 0
        record = ledger.load(KEY)
        assert (record.status, record.result_key, record.metadata["queue"], record.metadata["result"]) == (
            "succeeded",
            "inline",
            "jobs",
            {"n": 1},
        )
        assert record.first_seen_at <= record.completed_at

    @pytest.mark.parametrize(
        ("kind", "metadata"), [("same store", {}), ("same store", {"queue": "jobs", "result": "done by localqueue"}), ("own", {})]
    )
    def test_a_key_that_was_marked_as_done_under_its_own_name_is_not_handled(
        self, store: URLQueueStore, kind: str, metadata: dict[str, Any]
    ) -> None:
        ledger: Any = OwnLedger() if kind == "own" else URLIdempotencyStore(store.client)
        ledger.save("k", IdempotencyRecord("succeeded", 1.0, 2.0, "inline", metadata))
        jobs = once(store, ledger=ledger, results=ReturnStoredResult())
        jobs.put("work", dedupe_key="k")
        assert worker(jobs, pytest.fail)() == metadata.get("result")
        assert jobs.stats().total == 0

    @pytest.mark.parametrize(
        "record", [IdempotencyRecord("succeeded", 1.0, 2.0, None, {"queue": "audit"}), IdempotencyRecord("failed", 1.0, 2.0)]
    )
    def test_a_key_that_another_queue_finished_or_that_failed_is_handled(self, store: URLQueueStore, record: IdempotencyRecord) -> None:
        ledger = URLIdempotencyStore(store.client)
        ledger.save("k", record)
        jobs = once(store, ledger=ledger)
        jobs.put("work", dedupe_key="k")
        assert worker(jobs)() == "WORK"

    def test_without_a_result_policy_a_repetition_gets_none(self, store: URLQueueStore) -> None:
        jobs = once(store, ledger=URLIdempotencyStore(store.client))
        for expected in ("WORK", None):
            jobs.put("work", dedupe_key="k")
            assert worker(jobs)() == expected

    @pytest.mark.parametrize("kind", ["same store", "another store", "own"])
    def test_a_result_may_live_in_a_store_of_its_own(self, store: URLQueueStore, kind: str) -> None:
        stores = {"same store": URLResultStore(store.client), "another store": MemoryResultStore(), "own": OwnResults()}
        results: Any = stores[kind]
        ledger = URLIdempotencyStore(store.client)
        jobs = once(store, ledger=ledger, results=ReturnStoredResult(result_store=results))
        for _ in range(2):
            jobs.put("work", dedupe_key="k")
            assert worker(jobs)() == "WORK"
        assert results.load(KEY) == "WORK"
        record = ledger.load(KEY)
        assert record is not None
        assert (record.result_key, "result" in record.metadata) == (KEY, False)

    def test_a_failure_is_noted_and_the_key_may_be_tried_again(self, store: URLQueueStore) -> None:
        ledger = URLIdempotencyStore(store.client)
        jobs = once(store, ledger=ledger)
        jobs.put("work", dedupe_key="k")
        with pytest.raises(ZeroDivisionError):
            worker(jobs, lambda _: 1 / 0)()
        record = ledger.load(KEY)
        assert record is not None
        assert (record.status, record.metadata["last_error"]["type"]) == ("failed", "ZeroDivisionError")
        jobs.put("work", dedupe_key="k")
        assert worker(jobs)() == "WORK"

    def test_records_that_succeeded_are_pruned_by_age(self) -> None:
        ledger = MemoryIdempotencyStore()
        ledger.save("old", IdempotencyRecord("succeeded", 1.0, 100.0))
        ledger.save("failed", IdempotencyRecord("failed", 1.0, 100.0))
        ledger.save("new", IdempotencyRecord("succeeded", 1.0, 190.0))
        assert ledger.count_completed_older_than(older_than=50.0, now=200.0) == 1
        assert ledger.prune_completed(older_than=50.0, now=200.0) == 1
        assert [ledger.load(key) is None for key in ("old", "failed", "new")] == [True, False, False]
        ledger.delete("new")
        assert ledger.load("new") is None

    @pytest.mark.anyio
    @pytest.mark.usefixtures("closed_in_loop")
    async def test_tasks_keep_the_same_ledger(self, store: URLQueueStore) -> None:
        jobs = once(store, ledger=URLIdempotencyStore(store.client), results=ReturnStoredResult())

        @persistent_async_worker(jobs)
        async def handle(value: str) -> str:
            return value.upper()

        for _ in range(2):
            jobs.put("work", dedupe_key="k")
            assert await handle() == "WORK"


class TestAtomicity:
    def test_what_cannot_be_committed_leaves_nothing_behind(self, store: URLQueueStore, clock: FakeClock) -> None:
        """The lease is lost at the last moment: neither ledger, nor result, nor envelope may say that it succeeded."""
        ledger, results = URLIdempotencyStore(store.client), URLResultStore(store.client)
        jobs = once(
            store,
            ledger=ledger,
            results=ReturnStoredResult(result_store=results),
            commits=TransactionalOutboxCommit(outbox_store=results),
        )
        message = jobs.put("work", dedupe_key="k")

        def lose(_: str) -> str:
            thief = PersistentQueue[Any]("jobs", store=store)
            thief.purge()
            return "done"

        with pytest.raises(Exception, match="no longer held"):
            worker(jobs, lose)()
        record = ledger.load(KEY)
        assert record is not None
        assert record.status == "pending"
        assert results.load(KEY) is None
        assert results.load(f"outbox:{KEY}") is None
        assert relay_commits(jobs, deliver=print).delivered == 0
        assert jobs.inspect(message.id) is None

    def test_a_store_of_ones_own_that_fails_prevents_the_acknowledgement(self, store: URLQueueStore) -> None:
        jobs = once(store, commits=TransactionalOutboxCommit(outbox_store=OwnResults(fails_for="outbox")))
        jobs.put("work", dedupe_key="k")
        with pytest.raises(OSError, match="away"):
            worker(jobs)()
        assert jobs.stats().total == 1
        assert jobs.get_message().last_error is not None

    @pytest.mark.parametrize("results", [NO_RESULT_POLICY, ReturnStoredResult(), ReturnStoredResult(result_store=MemoryResultStore())])
    def test_an_envelope_that_could_not_be_saved_is_saved_with_the_next_delivery(self, results: ResultPolicy) -> None:
        """The ledger is elsewhere, so it says that the message is done before the message can be acknowledged."""
        outbox, calls = OwnResults(fails_for="outbox"), []
        commits = TransactionalOutboxCommit(outbox_store=outbox)
        jobs = once(MemoryQueueStore(), ledger=MemoryIdempotencyStore(), results=results, commits=commits)
        message = jobs.put("work", dedupe_key="k")

        def handle(value: str) -> str:
            calls.append(value)
            return value.upper()

        with pytest.raises(OSError, match="away"):
            worker(jobs, handle)()
        outbox.fails_for = "nothing"
        assert worker(jobs, handle)() == (None if results is NO_RESULT_POLICY else "WORK")
        assert calls == ["work"]
        result_key = KEY if results.as_dict().get("result_store") else None
        envelope = {"queue": "jobs", "message_id": message.id, "dedupe_key": "k", "result_key": result_key, "result": "WORK"}
        assert outbox.values == {f"outbox:{KEY}": envelope}
        delivered: list[Any] = []
        relay_commits(jobs, deliver=delivered.append)
        assert (delivered, jobs.stats().total) == ([envelope], 0)

    def test_a_duplicate_of_what_is_done_leaves_no_second_envelope(self) -> None:
        outbox = OwnResults()
        jobs = once(MemoryQueueStore(), ledger=MemoryIdempotencyStore(), commits=TransactionalOutboxCommit(outbox_store=outbox))
        for _ in range(2):
            jobs.put("work", dedupe_key="k")
            worker(jobs)()
            outbox.values.clear()
        assert outbox.values == {}
        assert relay_commits(jobs, deliver=lambda _: None).delivered == 1


class TestOutbox:
    @pytest.mark.parametrize("kind", ["same store", "another store", "own"])
    def test_the_relay_delivers_the_envelope_once_it_is_committed(self, store: URLQueueStore, kind: str) -> None:
        stores = {"same store": URLResultStore(store.client), "another store": MemoryResultStore(), "own": OwnResults()}
        outbox: Any = stores[kind]
        jobs = once(store, commits=TransactionalOutboxCommit(outbox_store=outbox))
        message = jobs.put("work", dedupe_key="k")
        worker(jobs)()
        envelope = {"queue": "jobs", "message_id": message.id, "dedupe_key": "k", "result_key": None, "result": "WORK"}
        assert outbox.load(f"outbox:{KEY}") == envelope

        delivered: list[Any] = []
        assert relay_commits(jobs, deliver=delivered.append).delivered == 1
        assert delivered == [envelope]
        assert outbox.load(f"outbox:{KEY}") is None
        assert relay_commits(jobs, deliver=delivered.append).delivered == 0

    def test_a_delivery_that_fails_is_tried_again_later(
        self, store: URLQueueStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        jobs = once(store, commits=TransactionalOutboxCommit(outbox_store=URLResultStore(store.client)))
        jobs.put("work", dedupe_key="k")
        worker(jobs)()

        def refuse(_: Any) -> None:
            raise OSError("broker away")

        with caplog.at_level(logging.WARNING, "holdfast"):
            assert (relayed := relay_commits(jobs, deliver=refuse)).failed == 1
        assert relayed.delivered == 0
        assert "could not be relayed" in caplog.text
        delivered: list[Any] = []
        assert relay_commits(jobs, deliver=delivered.append).delivered == 0
        clock.advance(1.0)
        assert relay_commits(jobs, deliver=delivered.append).delivered == 1

    def test_a_relay_that_is_interrupted_gives_the_envelope_back(self, store: URLQueueStore) -> None:
        jobs = once(store, commits=TransactionalOutboxCommit(outbox_store=URLResultStore(store.client)))
        jobs.put("work", dedupe_key="k")
        worker(jobs)()

        def interrupted(_: Any) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            relay_commits(jobs, deliver=interrupted)
        assert relay_commits(jobs, deliver=lambda _: None).delivered == 1

    @pytest.mark.anyio
    @pytest.mark.usefixtures("closed_in_loop")
    async def test_tasks_relay_too(self, store: URLQueueStore) -> None:
        jobs = once(store, commits=TransactionalOutboxCommit(outbox_store=URLResultStore(store.client)))
        jobs.put("work", dedupe_key="k")
        worker(jobs)()
        delivered: list[Any] = []

        async def deliver(envelope: dict[str, Any]) -> None:
            delivered.append(envelope["result"])

        assert (await relay_commits_async(jobs, deliver=deliver)).delivered == 1
        assert delivered == ["WORK"]

    def test_without_a_store_nothing_is_written(self, store: URLQueueStore) -> None:
        jobs = once(store, commits=TransactionalOutboxCommit())
        jobs.put("work", dedupe_key="k")
        worker(jobs)()
        assert relay_commits(jobs, deliver=print).delivered == 0


class TestTwoPhases:
    def test_both_envelopes_are_there_after_a_success(self, store: URLQueueStore, clock: FakeClock) -> None:
        envelopes = URLResultStore(store.client)
        jobs = once(store, commits=TwoPhaseCommit(prepare_store=envelopes, commit_store=envelopes))
        jobs.put("work", dedupe_key="k")
        worker(jobs)()
        assert [envelopes.load(f"{phase}:{KEY}")["phase"] for phase in ("prepare", "commit")] == ["prepare", "commit"]  # type: ignore[index] # they are there
        clock.advance(60.0)
        assert relay_commits(jobs).delivered == 0

    def test_what_was_left_prepared_is_committed_by_the_relay(self, store: URLQueueStore, clock: FakeClock) -> None:
        """The worker dies, here of its commit store, between the two phases."""
        prepared, committed = URLResultStore(store.client), OwnResults(fails_for="commit")
        jobs = once(store, commits=TwoPhaseCommit(prepare_store=prepared, commit_store=committed))
        jobs.put("work", dedupe_key="k")
        with pytest.raises(OSError, match="away"):
            worker(jobs)()

        assert prepared.load(f"prepare:{KEY}") is not None
        assert jobs.stats().total == 0
        assert relay_commits(jobs).delivered == 0
        committed.fails_for = "nothing"
        clock.advance(30.0)
        assert relay_commits(jobs).delivered == 1
        assert committed.values[f"commit:{KEY}"]["phase"] == "commit"

    def test_without_a_commit_store_only_the_first_phase_is_kept(self, store: URLQueueStore, clock: FakeClock) -> None:
        prepared = URLResultStore(store.client)
        jobs = once(store, commits=TwoPhaseCommit(prepare_store=prepared))
        jobs.put("work", dedupe_key="k")
        worker(jobs)()
        assert prepared.load(f"prepare:{KEY}") is not None
        clock.advance(60.0)
        assert relay_commits(jobs).delivered == 0


class TestSaga:
    def test_a_success_leaves_a_forward_envelope(self, store: URLQueueStore) -> None:
        saga = URLResultStore(store.client)
        jobs = once(store, commits=SagaCommit(saga_store=saga))
        message = jobs.put("work", dedupe_key="k")
        worker(jobs)()
        forward = saga.load(f"saga:forward:{KEY}")
        assert forward == {"queue": "jobs", "message_id": message.id, "dedupe_key": "k", "phase": "forward", "result": "WORK"}
        assert relay_commits(jobs, compensate=print).delivered == 0

    def test_a_final_failure_is_compensated_by_the_relay(self, store: URLQueueStore) -> None:
        saga = URLResultStore(store.client)
        jobs = once(store, commits=SagaCommit(saga_store=saga))
        jobs.put("work", dedupe_key="k")
        with pytest.raises(ZeroDivisionError):
            worker(jobs, lambda _: 1 / 0)()
        undone: list[Any] = []
        assert relay_commits(jobs, compensate=undone.append).delivered == 1
        assert [(one["phase"], one["error"]["type"]) for one in undone] == [("compensate", "ZeroDivisionError")]
        assert saga.load(f"saga:compensate:{KEY}") == undone[0]

    def test_a_success_after_the_failure_takes_the_compensation_back(self, store: URLQueueStore) -> None:
        jobs = once(store, commits=SagaCommit(saga_store=URLResultStore(store.client)))
        jobs.put("work", dedupe_key="k")
        with pytest.raises(ZeroDivisionError):
            worker(jobs, lambda _: 1 / 0)()
        (dead,) = jobs.dead_letters()
        jobs.requeue_dead(dead)
        worker(jobs)()
        assert relay_commits(jobs, compensate=print).delivered == 0

    def test_a_failure_that_is_tried_again_is_not_compensated(self, store: URLQueueStore) -> None:
        jobs = once(store, commits=SagaCommit(saga_store=URLResultStore(store.client)))
        jobs.put("work", dedupe_key="k")
        with pytest.raises(ZeroDivisionError):
            persistent_worker(jobs, max_tries=1, wait=wait_none(), dead_letter_on_failure=False)(lambda _: 1 / 0)()
        assert relay_commits(jobs, compensate=print).delivered == 0


def test_a_relay_without_somebody_to_hand_to_says_so(store: URLQueueStore, caplog: pytest.LogCaptureFixture) -> None:
    jobs = once(store, commits=TransactionalOutboxCommit(outbox_store=URLResultStore(store.client)))
    jobs.put("work", dedupe_key="k")
    worker(jobs)()
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert relay_commits(jobs).failed == 1
    assert "give relay_commits deliver=" in caplog.text
