"""A worker or a relay that dies before or after any command it sends: what was begun is finished by those who come after it.

Death is a store that answers nothing any more; what it had answered before is kept, as of a process that is killed.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, cast

import pytest
from tenacity import wait_none

from holdfast.client import ControlPlaneClient
from holdfast.commands import Claim, Command
from holdfast.stores import Store
from holdfast.surfaces.localqueue import (
    CommitPolicy,
    EffectivelyOnceDelivery,
    PersistentQueue,
    PersistentRetryExhausted,
    ReturnStoredResult,
    SagaCommit,
    TransactionalOutboxCommit,
    TwoPhaseCommit,
    URLIdempotencyStore,
    URLQueueStore,
    URLResultStore,
    persistent_worker,
    relay_commits,
)
from holdfast.testing.clock import FakeClock

LEASE_S = 30.0

Commits = Callable[[URLResultStore], CommitPolicy]


class Death(BaseException):
    """No answer comes any more."""


class Mortal:
    """A store for one who dies at a step: each command has two, one before it and one after it."""

    def __init__(self, store: Store, dies_at: int) -> None:
        self._store = store
        self._dies_at = dies_at
        self._steps = count()

    def execute(self, command: Command[Any]) -> Any:
        self._step()
        answer = self._store.execute(command)
        self._step()
        return answer

    def _step(self) -> None:
        if next(self._steps) >= self._dies_at:
            raise Death

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def jobs_on(client: ControlPlaneClient, commits: Commits) -> PersistentQueue[str]:
    results = URLResultStore(client)
    delivery = EffectivelyOnceDelivery(
        idempotency_store=URLIdempotencyStore(client),
        result_policy=ReturnStoredResult(result_store=results),
        commit_policy=commits(results),
    )
    return PersistentQueue("jobs", store=URLQueueStore(client), delivery_policy=delivery, lease_timeout=LEASE_S)


def deaths(store: URLQueueStore, commits: Commits, do: Callable[[PersistentQueue[str]], object]) -> Iterator[str]:
    """Do something again and again, dying one step later each time, until it is over before death comes; each time with another key."""
    for step in count():
        key = f"k{step}"
        jobs_on(store.client, commits).put(key, dedupe_key=key)
        is_over = outlives(store, step, lambda client: do(jobs_on(client, commits)))
        yield key
        if is_over:
            assert step > 4, "it sends more than two commands"
            return


def outlives(store: URLQueueStore, step: int, do: Callable[[ControlPlaneClient], object]) -> bool:
    """Whether it is done before death comes."""
    client = ControlPlaneClient.on(cast("Store", Mortal(store.client.store, dies_at=step)))
    try:
        do(client)
    except Death:
        return False
    finally:
        # The dead renew nothing.
        client.keepalive.close()
    return True


def work(jobs: PersistentQueue[str]) -> object:
    return persistent_worker(jobs, max_tries=3)(str.upper)()


def fail(jobs: PersistentQueue[str]) -> None:
    def broken(_: str) -> None:
        raise ConnectionError

    # Where only the burial was missing, the tries are used up.
    with pytest.raises((ConnectionError, PersistentRetryExhausted)):
        persistent_worker(jobs, max_tries=2, wait=wait_none())(broken)()


def outbox(results: URLResultStore) -> CommitPolicy:
    return TransactionalOutboxCommit(outbox_store=results)


def two_phase(results: URLResultStore) -> CommitPolicy:
    return TwoPhaseCommit(prepare_store=results, commit_store=results)


def saga(results: URLResultStore) -> CommitPolicy:
    return SagaCommit(saga_store=results)


FIRST: dict[Commits, str] = {outbox: "outbox", two_phase: "prepare", saga: "saga:forward"}
"""The envelope that is written with the acknowledgement."""


@pytest.mark.parametrize("commits", [outbox, two_phase, saga])
def test_a_worker_that_dies_at_any_step_has_committed_all_or_nothing_and_is_followed(
    store: URLQueueStore, clock: FakeClock, commits: Commits
) -> None:
    jobs, ledger, results = jobs_on(store.client, commits), URLIdempotencyStore(store.client), URLResultStore(store.client)
    for key in deaths(store, commits, work):
        name = f"dedupe:jobs:{key}"
        record = ledger.load(name)
        kept = [record is not None and record.status == "succeeded", results.load(name), results.load(f"{FIRST[commits]}:{name}")]
        is_acknowledged = jobs.stats().total == 0
        assert [bool(one) for one in kept] == [is_acknowledged] * 3

        clock.advance(LEASE_S)
        if not is_acknowledged:
            assert work(jobs) == key.upper()
        delivered: list[Any] = []
        relay_commits(jobs, deliver=delivered.append, compensate=delivered.append)

        assert jobs.stats().total == 0
        assert results.load(name) == key.upper()
        assert [one["dedupe_key"] for one in delivered] == ([key] if commits is outbox else [])
        assert (results.load(f"commit:{name}") is not None) is (commits is two_phase)
        assert relay_commits(jobs, deliver=delivered.append, compensate=delivered.append).delivered == 0


def test_a_failure_of_which_the_worker_died_is_compensated_all_the_same(store: URLQueueStore, clock: FakeClock) -> None:
    jobs, results = jobs_on(store.client, saga), URLResultStore(store.client)
    for key in deaths(store, saga, fail):
        name = f"saga:compensate:dedupe:jobs:{key}"
        is_over = jobs.stats().dead == 1
        assert (results.load(name) is not None) is is_over

        clock.advance(LEASE_S)
        if not is_over:
            fail(jobs)
        undone: list[Any] = []
        relay_commits(jobs, compensate=undone.append)

        assert [one["dedupe_key"] for one in undone] == [key]
        clock.advance(1.0)
        assert jobs.prune_dead_letters(older_than=0.0) == 1


def test_a_saga_of_which_every_worker_died_is_compensated_once_for_each_life(store: URLQueueStore, clock: FakeClock) -> None:
    jobs = jobs_on(store.client, saga)
    message = jobs.put("k", dedupe_key="k")
    undone: list[Any] = []
    for life in (1, 2):
        for _ in range(3):
            # It claims, and that is all.
            assert not outlives(store, 2, lambda client: work(jobs_on(client, saga)))
            clock.advance(LEASE_S)
        assert store.client.store.execute(Claim("jobs", lease_s=LEASE_S, expired_to="back", max_attempts=3)).messages == []
        assert len(jobs.dead_letters()) == 1, "buried by the store, when a worker asked for it"
        for _ in range(2):
            relay_commits(jobs, compensate=undone.append)
        assert [(one["phase"], one["message_id"], one["attempts"]) for one in undone] == [
            ("compensate", message.id, 3 * past) for past in range(1, life + 1)
        ]
        jobs.requeue_dead(message)


@pytest.mark.parametrize("commits", [outbox, two_phase])
def test_a_relay_that_dies_at_any_step_is_followed_by_another(store: URLQueueStore, clock: FakeClock, commits: Commits) -> None:
    jobs, results = jobs_on(store.client, commits), URLResultStore(store.client)
    delivered: list[str] = []

    def deliver(envelope: dict[str, Any]) -> None:
        delivered.append(envelope["dedupe_key"])

    def relay(mortal: PersistentQueue[str]) -> None:
        leave_a_phase(store, commits) if commits is two_phase else work(jobs)
        clock.advance(LEASE_S)
        relay_commits(mortal, deliver=deliver)

    for key in deaths(store, commits, relay):
        clock.advance(LEASE_S)
        relay_commits(jobs, deliver=deliver)

        name = f"dedupe:jobs:{key}"
        assert (key in delivered) is (commits is outbox)
        assert results.load(f"outbox:{name}") is None
        assert (results.load(f"commit:{name}") is not None) is (commits is two_phase)
        assert relay_commits(jobs, deliver=deliver).delivered == 0


def leave_a_phase(store: URLQueueStore, commits: Commits) -> None:
    """Have a worker die between the two phases."""

    class Dying(Mortal):
        def execute(self, command: Command[Any]) -> Any:
            if "commit:" in repr(command) and "Settle" not in repr(command):
                raise Death
            return self._store.execute(command)

    client = ControlPlaneClient.on(cast("Store", Dying(store.client.store, 0)))
    with pytest.raises(Death):
        work(jobs_on(client, commits))
    client.keepalive.close()
