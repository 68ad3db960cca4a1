"""Every call about the settings and groups of a queue, and about locks and rates in a step, for type checkers."""

from dataclasses import dataclass
from typing import Any, assert_type

from holdfast import (
    Backoff,
    ControlPlaneClient,
    DictCompareAndSetResult,
    DictLock,
    GroupInfo,
    Limiter,
    Lock,
    MessageId,
    Queue,
    QueueGroup,
    QueueMessage,
    Rate,
    RWLock,
    Semaphore,
    Stats,
    aio,
)


@dataclass
class Job:
    picture: str


def groups(jobs: Queue[Job]) -> None:
    jobs.configure(groups="fair", group_limit=4, group_rate=Rate(10, per_s=1.0, burst=5), limit=32, rate=Rate(600, per_s=60.0))
    jobs.configure(groups="strict", group_dead="hold", group_limit=None, order="fifo", aging_s=None, late_to="dead")
    jobs.configure(max_attempts=5, dead_letter_queue="x", lease_s=60.0, backoff=Backoff(1.0, most_s=3600.0), keep_done_s=None)
    jobs.throttle(30.0)
    acme = jobs.group("acme")
    assert_type(acme, QueueGroup)
    acme.configure(limit=10, weight=3, rate=None, paused=False)
    acme.pause()
    acme.resume()
    acme.throttle(30.0)
    acme.forget()
    assert_type(acme.stats(), Stats)
    assert_type(acme.info(), GroupInfo | None)
    assert_type(jobs.groups(prefix="a", after=None, limit=10), list[GroupInfo])
    assert_type(jobs.put(Job("a"), group="acme"), MessageId)
    assert_type(jobs.browse(state="done", group="acme"), list[QueueMessage])


def steps(client: ControlPlaneClient) -> None:
    with client.together() as step:
        taken = step.acquire_lock(Lock("a"))
        step.acquire_lock(Semaphore("gpu", 4))
        step.acquire_lock(RWLock("index").reading())
        used = step.acquire_rate(Limiter("api", Rate(1, per_s=1.0)), key=("tenant", 1), cost=3)
    assert_type(taken.result, DictLock[Any])
    assert_type(used.result, DictCompareAndSetResult)
    with client.together() as step:
        renewed = step.renew_lock(taken.result, lease_s=60.0)
        released = step.release_lock(taken.result)
    assert_type(renewed.result, DictLock[Any])
    assert_type(released.result, bool)


async def steps_of_tasks(client: ControlPlaneClient) -> None:
    async with client.aio.together() as step:
        taken = step.acquire_lock(aio.Semaphore("gpu", 4))
        step.acquire_rate(aio.Limiter("api", Rate(1, per_s=1.0)))
    await taken.result.release()
