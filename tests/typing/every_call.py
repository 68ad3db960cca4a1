"""Every public call, with the types a user sees; nothing here runs, type checkers read it."""

import math
import sqlite3
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, assert_type

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from holdfast import (
    MISSING,
    ClaimLost,
    Compacted,
    ControlPlaneClient,
    CopyResult,
    CopyUndone,
    Dict,
    DictCompareAndSetResult,
    DictEntry,
    DictLease,
    DictLock,
    DictResponse,
    Election,
    Every,
    Explanation,
    Fence,
    JobContext,
    LeaseGrant,
    LeaseHeld,
    LeaseHolder,
    LeaseInfo,
    Limiter,
    Lock,
    MessageId,
    Once,
    OnceRecord,
    Queue,
    QueueClaim,
    QueueMessage,
    QueueRates,
    QueueResponse,
    QueueWorkItem,
    Rate,
    Refused,
    RWLock,
    Schedule,
    ScheduleStatus,
    Semaphore,
    Stats,
    StoreMoved,
    TaskRates,
    Together,
    WatchEvent,
    Worker,
    WorkerHealth,
    WorkerInfo,
    aio,
    connect,
    copy,
    fence,
    once,
    undo_copy,
    worker,
)
from holdfast import Job as WorkerJob
from holdfast.codec import MSGPACK, Limits
from holdfast.commands import Claim, Put
from holdfast.records import Lease, Message, Receipt
from holdfast.stores import AsyncExecutor, AsyncStore, Executor, Guarantees, Store
from holdfast.testing import FakeClock


@dataclass
class Job:
    picture: str


def clients() -> None:
    client = ControlPlaneClient("memory://", token="secret", limits=Limits(value_bytes=1_000))  # noqa: S106 - not one
    with client as entered:
        assert_type(entered, ControlPlaneClient)
    assert_type(client.url, str)
    assert_type(client.token, str | None)
    assert_type(client.is_closed, bool)
    assert_type(client.opened, Store | None)
    assert_type(client.is_behind_server, bool)
    assert_type(ControlPlaneClient.shared("memory://"), ControlPlaneClient)
    assert_type(client.store, Store)
    assert_type(client.async_store, AsyncStore)
    assert_type(client.store_on(sqlite3.connect("app.db")), Executor)
    assert_type(client.async_store_on(sqlite3.connect("app.db")), AsyncExecutor)
    assert_type(client.together(), Together)
    assert_type(client.together(connection=sqlite3.connect("app.db")), Together)
    assert_type(client.aio.together(), aio.Together)
    assert_type(ControlPlaneClient.on(connect("memory://")), ControlPlaneClient)
    client.check_renewal()
    client.keepalive.close()
    client.close()


def stores() -> None:
    assert_type(copy("memory://a", "memory://b", merge=True, progress=lambda so_far: so_far.done), CopyResult)
    assert_type(undo_copy("sqlite:///a.db", "sqlite:///b.db", force=True), CopyUndone)
    assert_type(connect("memory://a", create=False), Store)
    store = connect("memory://", limits=Limits())
    assert_type(store, Store)
    assert_type(store.guarantees, Guarantees)
    assert_type(store.url, str)
    assert_type(store.wall_offset_us(), int)
    assert_type(aio.connect("memory://"), AsyncStore)
    assert_type(store.execute(Claim("jobs", "worker", 30.0)).due_in_s, float | None)
    assert_type(store.execute(Put("jobs", [])).ids, list[str])
    clock = FakeClock()
    clock.advance(1.0)
    clock.step_wall(-1.0)
    store.close()


def queues(client: ControlPlaneClient) -> None:
    unannotated = Queue("jobs"), Dict("state")
    assert_type(unannotated, tuple[Queue[Any], Dict[Any]])
    assert_type(Queue.from_name("jobs"), Queue[Any])
    assert_type(Queue.from_name("jobs", type=Job), Queue[Job])
    assert_type(Queue.create("jobs", codec=MSGPACK, maxsize=10), Queue[Any])
    assert_type(Queue.list(prefix="j", client=client), list[Queue[Any]])
    jobs = Queue.create("jobs", type=Job, maxsize=None, base_url="memory://")
    assert_type(jobs, Queue[Job])
    assert_type(jobs.aio, aio.Queue[Job])
    assert_type(jobs.name, str)
    jobs.configure(maxsize=5, paused=False)
    jobs.pause()
    jobs.resume()
    assert_type(jobs.length(client=client), int)
    assert_type(jobs.stats(base_url="memory://"), Stats)
    id = jobs.put(Job("cat.png"), key=("user", 7), if_present="keep", priority=1, delay_s=1.0, start_within_s=60.0)  # noqa: A001 - the user's word
    assert_type(id, MessageId)
    assert_type(id.created, bool)
    jobs.put(Job("a"), at=datetime.now(UTC), if_ready="update", if_leased="buffer", key=1, metadata={"by": "ann"}, id="1", timeout_s=1.0)
    jobs.put(Job("a"), if_ready="postpone", at_latest_s=60.0, key=1, unique_for_s=3600.0, if_recent="reject", if_id="reject")
    assert_type(jobs.put_many([Job("a"), Job("b")], keys=[1, "b"], priority=2), list[MessageId])
    assert_type(jobs.put_work(Job("a"), max_attempts=3, dead_letter_queue="dead", metadata={}), MessageId)
    assert_type(jobs.get_many(10, timeout_s=math.inf, poll_interval_s=0.5), list[Job])
    jobs.get(default=None, timeout_s=1.0)
    assert_type(jobs.claim(claimer="w", lease_s=60.0, timeout_s=None, expired_to="back"), QueueClaim[Job] | None)
    assert_type(jobs.claim_many(10, claimer="w"), list[QueueClaim[Job]])
    assert_type(jobs.take(("user", 7), claimer="w"), QueueClaim[Job] | None)
    assert_type(jobs.claim_work(claimer="w", max_attempts=3, dead_letter_queue="dead"), QueueWorkItem[Job] | None)
    assert_type(jobs.peek(), QueueMessage | None)
    seen = jobs.browse(state="leased", older_than_s=1.0, error_contains="x", prefix="u", after=None, limit=10)
    assert_type(seen, list[QueueMessage])
    assert_type(jobs.explain(id), Explanation)
    assert_type(jobs.rates(60.0), QueueRates)
    assert_type(jobs.group_rates(since_s=60.0), dict[str, QueueRates])
    assert_type(jobs.task_rates(since_s=60.0), dict[str, TaskRates])
    assert_type(jobs.cancel([id]), QueueResponse)
    assert_type(jobs.dead_letters(limit=5), list[QueueMessage])
    assert_type(jobs.redrive(rate_per_s=10.0, to="other"), QueueResponse)
    assert_type(jobs.prune_dead_letters(86_400.0), QueueResponse)
    assert_type(jobs.watch(key=("user", 1)), Generator[WatchEvent, None, None])
    assert_type(jobs.watch(prefix=("user",)), Generator[WatchEvent, None, None])
    assert_type(jobs.watch(last_index=-1, timeout_s=0.0, poll_interval_s=0.5, snapshot=True), Generator[WatchEvent, None, None])
    assert_type(jobs.clear(), QueueResponse)
    assert_type(jobs.delete(), QueueResponse)


def claims(jobs: Queue[Job], claim: QueueClaim[Job], work: QueueWorkItem[Job]) -> None:
    assert_type(claim.value, Job)
    assert_type(claim.claim_id, str)
    assert_type(claim.record, Message)
    assert_type(claim.id + claim.queue + claim.claimer, str)
    assert_type(claim.token + claim.attempts + claim.failures, int)
    assert_type(claim.max_attempts, int | None)
    assert_type(claim.last_error, str | None)
    assert_type(claim.key, Any)
    assert_type(claim.metadata, dict[str, Any] | None)
    assert_type(claim.labels, tuple[str, ...])
    assert_type(claim.created_at, datetime | None)
    assert_type(claim.expires_at, datetime | None)
    assert_type(claim.lost, bool)
    claim.check()
    assert_type(claim.renew(lease_s=60.0), QueueResponse)
    assert_type(claim.release(return_to="front", delay_s=1.0), QueueResponse)
    assert_type(claim.fail(error="x", delay_s=1.0), QueueResponse)
    assert_type(claim.ack().count, int)
    assert_type(claim.ack(connection=sqlite3.connect("app.db")).count, int)
    assert_type(jobs.put(Job("a"), connection=sqlite3.connect("app.db")), MessageId)
    assert_type(jobs.ack([claim, claim.claim_id], strict=False).lost, int)
    assert_type(jobs.release(claim, return_to="place"), QueueResponse)
    assert_type(jobs.renew(claim, lease_s=60.0), QueueResponse)
    assert_type(jobs.fail(claim, error="x"), QueueResponse)
    assert_type(jobs.bury([claim], error="x"), QueueResponse)
    context = jobs.claimed(claimer="w", lease_s=60.0, auto_renew=True, renew_interval_s=None, ack_on_success=True, release_on_error=True)
    with context as job:
        assert_type(job, Job | None)
    assert_type(context.claim, QueueClaim[Job] | None)
    assert_type(work.payload, Job)
    assert_type(work.claim, QueueClaim[Job])
    assert_type(work.id + work.claim_id, str)
    assert_type(work.token + work.attempts, int)
    assert_type(work.max_attempts, int | None)
    assert_type(work.metadata, dict[str, Any] | None)
    assert_type(work.labels, tuple[str, ...])
    assert_type(work.lost, bool)
    work.check()
    work.complete({"ok": True}, puts={"next": [1]}, writes={"state": {"a": 1}}, results="results", keep_result_s=None)
    assert_type(work.ack(), QueueResponse)
    assert_type(work.fail("x"), QueueResponse)
    assert_type(work.release(), QueueResponse)
    assert_type(work.renew(lease_s=1.0), QueueResponse)


def dicts(client: ControlPlaneClient) -> None:
    assert_type(Dict.from_name("state"), Dict[Any])
    assert_type(Dict.from_name("state", type=Job), Dict[Job])
    assert_type(Dict.create("state", codec=MSGPACK), Dict[Any])
    assert_type(Dict.list(prefix="s", client=client), list[Dict[Any]])
    shared = Dict.create("state", type=Job, base_url="memory://")
    assert_type(shared, Dict[Job])
    assert_type(shared.aio, aio.Dict[Job])
    assert_type(shared.name, str)
    assert_type(shared.put("a", Job("x"), ttl_s=1.0, lease_id="l", fence=1), Job)
    assert_type(shared.put_if_absent("a", Job("x")), DictCompareAndSetResult)
    assert_type(shared.update({"a": Job("x")}), dict[Any, Job])
    shared.update([("a", Job("x"))], fence=3)
    assert_type(shared.lower_fences(), DictResponse)
    shared.get("a", default=None)
    assert_type(shared.get_many(["a", 1]), dict[Any, Job])
    assert_type(shared.get_entry("a"), DictEntry | None)
    assert_type(shared.items(prefix=("u",), after="a", limit=3), list[tuple[Any, Job]])
    assert_type(shared.pages(size=10), Iterator[list[tuple[Any, Job]]])
    shared.pop("a", default=None)
    shared.increment("n", 2)
    result = shared.compare_and_set("a", MISSING, Job("x"), revision=None, lease_id=None)
    assert_type(result.updated, bool)
    assert_type(result.revision, int)
    assert_type(shared.update_with("a", lambda job: job or Job("x"), default=None), Job)
    assert_type(shared.watch(key="a", timeout_s=0.0), Generator[WatchEvent, None, None])
    assert_type(shared.watch(prefix="a"), Generator[WatchEvent, None, None])
    assert_type(shared.length(), int)
    assert_type(shared.clear(), DictResponse)
    assert_type(shared.clear(prefix=("a", 1)), DictResponse)
    assert_type(shared.delete("a", revision=3), DictResponse)
    assert_type(shared.delete(), DictResponse)


def leases(shared: Dict[Job]) -> None:
    lease = shared.acquire_lease("a", holder="h", lease_s=60.0)
    assert_type(lease, DictLease[Job])
    assert_type(lease.aio, aio.DictLease[Job])
    assert_type(lease.key, Any)
    assert_type(lease.lease_id + lease.holder, str)
    assert_type(lease.token, int)
    assert_type(lease.current_value, Job | None)
    assert_type(lease.expires_at, datetime | None)
    assert_type(lease.lost or lease.held, bool)
    lease.check()
    assert_type(lease.keep(), DictLease[Job])
    assert_type(lease.trusted_for_s, float)
    assert_type(lease.renew(30.0), DictLease[Job])
    assert_type(lease.release(), DictResponse)
    assert_type(shared.renew_lease("a", lease_id=lease.lease_id, lease_s=60.0), DictLease[Job])
    assert_type(shared.release_lease("a", lease_id=lease.lease_id), DictResponse)
    assert_type(shared.lease_holder("a"), LeaseHolder | None)
    with shared.lease("a", holder="h", auto_renew=True, renew_interval_s=1.0, max_hold_s=60.0) as held:
        assert_type(held, DictLease[Job])
    with shared.locked("a", holder="h", wait_timeout_s=1.0, poll_interval_s=0.5, default_value=Job("x")) as locked:
        assert_type(locked, DictLock[Job])
    assert_type(shared.try_become_leader("a", holder="h", default_value=Job("x"), auto_renew=True), DictLock[Job] | None)
    assert_type(shared.leases(limit=10), Sequence[LeaseInfo])
    assert_type(shared.break_lease("a", "stuck", token=7), Sequence[LeaseGrant])


def locks(client: ControlPlaneClient) -> None:
    limiter = Limiter("api", Rate(60, per_s=60.0, burst=10), client=client)
    limiter.acquire(key=("tenant", 7), cost=3, timeout_s=1.0)
    assert_type(limiter.aio, aio.Limiter)
    assert_type(limiter.rate.interval_us, int)
    lock = Lock("backup", holder="h", lease_s=30.0, wait_timeout_s=1.0, max_hold_s=60.0, client=client)
    with lock as held:
        assert_type(held.token, int)
    assert_type(lock.name + lock.holder, str)
    assert_type(lock.aio, aio.Lock)
    assert_type(lock.acquire(wait_timeout_s=1.0), DictLock[Any])
    assert_type(lock.try_acquire(), DictLock[Any] | None)
    assert_type(lock.holding(), LeaseHolder | None)
    assert_type(lock.kind, Literal["lock", "election", "semaphore", "rwlock"])
    assert_type(lock.break_("stuck", token=7), Sequence[LeaseGrant])
    Lock("backup", fair=True, in_line_s=5.0, max_waiters=10, client=client)


def shared_leases(client: ControlPlaneClient) -> None:
    semaphore = Semaphore("gpu", 4, weight=2, lease_s=30.0, wait_timeout_s=1.0, in_line_s=5.0, max_waiters=10, client=client)
    assert_type(semaphore.aio, aio.Semaphore)
    assert_type(semaphore.acquire(wait_timeout_s=1.0), DictLock[Any])
    assert_type(semaphore.try_acquire(), DictLock[Any] | None)
    assert_type(semaphore.holders(), Sequence[LeaseHolder])
    assert_type(semaphore.resize(8), int)
    rwlock = RWLock("index", lease_s=30.0, wait_timeout_s=1.0, in_line_s=5.0, max_waiters=10, client=client)
    assert_type(rwlock.aio, aio.RWLock)
    assert_type(rwlock.holders(), Sequence[LeaseHolder])
    with rwlock.reading() as reader, rwlock.writing() as writer:
        assert_type(reader, DictLock[Any])
        assert_type(writer, DictLock[Any])
    assert_type(fence(reader.token, "token", placeholder="?"), Fence)


def elections(client: ControlPlaneClient) -> None:
    election = Election("scheduler", holder="h", lease_s=30.0, client=client)
    with election as leadership:
        assert_type(leadership, DictLock[Any])
    assert_type(election.name + election.holder, str)
    assert_type(election.aio, aio.Election)
    assert_type(election.campaign(timeout_s=1.0), DictLock[Any])
    assert_type(election.is_leader, bool)
    assert_type(election.leader(), LeaseHolder | None)
    assert_type(election.observe(), Generator[LeaseHolder, None, None])
    assert_type(election.resign(), DictResponse)


def steps(client: ControlPlaneClient, jobs: Queue[Job], shared: Dict[Job], claim: QueueClaim[Job]) -> None:
    with client.together() as step:
        assert_type(step, Together)
        acked = step.ack(claim)
        step.release([claim], return_to="back", delay_s=1.0)
        step.fail(claim.claim_id, error="x", delay_s=1.0)
        put = step.put(jobs, Job("x"), key=1, if_present="keep")
        written = step.write(shared, "a", Job("x"), ttl_s=1.0, lease_id="l", fence=1)
        step.delete("state", "b", fence=1)
        step.compare_and_set("state", "c", MISSING, 1)
        step.increment("state", "n", 2)
        step.expect("state", "d", 1, lease_id="l")
        step.expect_revision("state", "e", 3)
        lease = step.acquire_lease("state", "f", holder="h", lease_s=60.0)
        step.renew_lease("state", "g", lease_id="l", lease_s=60.0)
        released = step.release_lease("state", "h", lease_id="l")
    assert_type(acked.result, QueueResponse)
    assert_type(put.result, MessageId)
    assert_type(written.result, DictCompareAndSetResult)
    assert_type(lease.result, Lease)
    assert_type(released.result, bool)


def results(event: WatchEvent, why: Explanation, message: QueueMessage, stats: Stats) -> None:
    assert_type(event.index, int)
    assert_type(event.event, str)
    assert_type(event.at, datetime)
    assert_type(str(why) + why.sentence, str)
    assert_type(why.until, datetime | None)
    assert_type(message.value, Any)
    assert_type(message.due_at, datetime | None)
    assert_type(stats.total + stats.ready, int)
    assert_type(stats.holders, dict[str, int])


def errors(lost: ClaimLost, held: LeaseHeld, refused: Refused, compacted: Compacted, moved: StoreMoved) -> None:
    assert_type(lost.lost, list[Receipt])
    assert_type(held.lease, Lease | None)
    assert_type(held.holder, str | None)
    assert_type(held.expires_in_s, float | None)
    assert_type(refused.step, int | None)
    assert_type(compacted.oldest, int)
    assert_type(moved.url, str)


async def for_tasks(client: ControlPlaneClient, jobs: Queue[Job], shared: Dict[Job]) -> None:
    async with client:
        pass
    await client.aio.close()
    assert_type(await Queue.aio.create("jobs", type=Job), aio.Queue[Job])
    assert_type(Queue.aio.from_name("jobs"), aio.Queue[Any])
    assert_type(await Queue.aio.list(), list[aio.Queue[Any]])
    assert_type(await jobs.aio.put(Job("x")), MessageId)
    claim = await jobs.aio.claim(claimer="w")
    assert_type(claim, aio.QueueClaim[Job] | None)
    if claim is not None:
        assert_type(await claim.ack(), QueueResponse)
    work = await jobs.aio.claim_work(claimer="w")
    assert_type(work, aio.QueueWorkItem[Job] | None)
    if work is not None:
        await work.complete("done")
    async with jobs.aio.claimed(claimer="w") as job:
        assert_type(job, Job | None)
    assert_type(jobs.aio.watch(), AsyncGenerator[WatchEvent, None])
    assert_type(await Dict.aio.create("state"), aio.Dict[Any])
    assert_type(await shared.aio.put("a", Job("x")), Job)
    assert_type(shared.aio.watch(snapshot=True), AsyncGenerator[WatchEvent, None])
    async for page in shared.aio.pages():
        assert_type(page, list[tuple[Any, Job]])
    async with shared.aio.lease("a", holder="h") as lease:
        assert_type(lease, aio.DictLease[Job])
    async with shared.aio.locked("a", holder="h") as locked:
        assert_type(await locked.renew(), aio.DictLock[Job])
    assert_type(await shared.aio.try_become_leader("a", holder="h"), aio.DictLock[Job] | None)
    async with aio.Lock("backup") as held:
        assert_type(held.token, int)
    election = aio.Election("scheduler")
    async with election as leadership:
        leadership.check()
    assert_type(election.observe(), AsyncGenerator[LeaseHolder, None])
    async with client.aio.together() as step:
        put = step.put(jobs, Job("x"))
    assert_type(put.result, MessageId)


@worker("mail", concurrency=4, results=True)
def send(value: int) -> str:
    return str(value)


@worker("slow mail", results=True, type=Job)
async def send_slowly(value: Job, job: JobContext) -> int:
    return len(value.picture) + job.attempts


def workers() -> None:
    assert_type(send(1), str)
    assert_type(send.queue, str)
    assert_type(send.client, ControlPlaneClient)
    assert_type(send.function(1), str)
    assert_type(send.orders.concurrency, int)
    job = send.put(1, delay_s=1.0)
    assert_type(job, WorkerJob[str])
    assert_type(send.put_many([1, 2]), list[WorkerJob[str]])
    assert_type(send.job(job.id), WorkerJob[str])
    assert_type(job.queue, str)
    assert_type(job.result(timeout_s=1.0), str)
    assert_type(WorkerJob("mail", job.id, type=Job).result(), Job)
    assert_type(WorkerJob("mail", job.id).result(), Any)
    send.put("one")  # type: ignore[arg-type] # what the function does not take
    send.put_many(["one"])  # type: ignore[list-item] # as above
    assert_type(send_slowly.put(Job("owl")).result(), int)
    assert_type(Worker(len, "lengths").put("abc").result(), int)
    assert_type(job.progress(), Any)
    job.cancel()
    other = send.changed(concurrency=2)
    other.run(until_empty=True)
    with other:
        other.pause()
        other.resume()
    other.start()
    other.tell_stop()
    other.stop(grace_s=1.0)
    assert_type(other.health, WorkerHealth)
    assert_type(Worker.list(), list[WorkerInfo])


def ledgers() -> None:
    ledger = Once("payments")
    assert_type(ledger.name, str)
    assert_type(ledger.run("order", lambda: 7, timeout_s=1.0), int)
    assert_type(ledger.get("order"), OnceRecord | None)
    assert_type(ledger.resolve("order", 7), bool)
    assert_type(ledger.forget("order"), bool)
    assert_type(once("order", lambda: 7), int)


async def workers_for_tasks() -> None:
    async def seven() -> int:
        return 7

    assert_type(await send.aio.put(1), aio.Job[str])
    assert_type(await send.aio.put_many([1]), list[aio.Job[str]])
    assert_type(await (await send_slowly.aio.put(Job("owl"))).result(), int)
    assert_type(await send_slowly(Job("owl"), job=None), int)
    assert_type(await aio.Once().run("order", seven), int)
    await send.aio.run(max_jobs=1)


def schedules(client: ControlPlaneClient) -> None:
    made = Schedule(
        "report", "0 3 * * *", ("reports", {"kind": "daily"}), tz="Europe/Vienna", overlap="queue", catch_up="all", client=client
    )
    Schedule("sync", Every(hours=6, offset_s=300.0), ("sync", None), jitter_s=30.0, starts_at=datetime.now(UTC), priority=3)
    made.save()
    made.pause("why")
    made.resume()
    assert_type(made.delete(), bool)
    assert_type(made.run_now().result(), Any)
    assert_type(made.next_runs(3), list[datetime])
    assert_type(made.status(), ScheduleStatus)
    assert_type(Schedule.list("a", client=client), list[ScheduleStatus])
    assert_type(Schedule.from_name("report", client=client), Schedule)
    assert_type(made.aio, aio.Schedule)


async def async_schedules(client: ControlPlaneClient) -> None:
    made = aio.Schedule("report", "@daily", ("reports", 1), client=client)
    await made.save()
    assert_type(await made.status(), ScheduleStatus)


async def connections(jobs: Queue[Job], session: Session, own: Connection, async_session: AsyncSession, async_own: AsyncConnection) -> None:
    assert_type(jobs.put(Job("a"), connection=session), MessageId)
    assert_type(jobs.put(Job("a"), connection=own), MessageId)
    assert_type(await jobs.aio.put(Job("a"), connection=async_session), MessageId)
    assert_type(await jobs.aio.put(Job("a"), connection=async_own), MessageId)
