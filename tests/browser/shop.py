"""A store in which something of everything is going on, for looking at the dashboard."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta

from holdfast import ControlPlaneClient, Dict, JobContext, Lock, Queue, Schedule, Semaphore, Tasks
from holdfast.codec import encode_key
from holdfast.commands import Write
from holdfast.commands.change import Change
from holdfast.errors import LeaseLost
from holdfast.workers.registry import WORKERS, WorkerHealth, WorkerInfo

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'"&'
ERRORS = ("ConnectionError: mail.example refused the connection", "ValueError: no such address", "ConnectionError: timed out")


@contextmanager
def open_shop(url: str, text: str = "hello") -> Iterator[ControlPlaneClient]:
    """Fill a store, and hold what is held in it until the block ends; `text` stands in every field that takes one."""
    with ControlPlaneClient(url) as client, ExitStack() as held:
        fill_mail(client, text)
        fill_tenants(client)
        Dict.create("settings", client=client).put(text, {"mode": text})
        Schedule("nightly", "0 3 * * *", ("reports", {"kind": text}), client=client).save()
        order(client)
        live_workers(client)
        held.enter_context(suppress(LeaseLost))  # It may be broken in the dashboard.
        held.enter_context(Lock("report", client=client))
        held.enter_context(Semaphore("gpu", 4, client=client))
        yield client


def fill_mail(client: ControlPlaneClient, text: str) -> None:
    """Messages in every state."""
    mail = Queue.create("mail", client=client)
    mail.configure(keep_done_s=3_600.0)
    for number, error in enumerate(ERRORS):
        mail.put({"to": text}, id=f"dead-{number}", max_attempts=1, priority=9)
        claim = mail.claim(claimer="worker-1")
        assert claim is not None
        mail.fail(claim, error=f"{error} {text}")
    mail.put({"to": "ann@example.org"}, id="done-1", priority=9)
    done = mail.claim(claimer="worker-1")
    assert done is not None
    mail.ack(done)
    mail.put({"to": "bob@example.org"}, id="leased-1", priority=9)
    again = mail.claim(claimer="worker-2", lease_s=600.0)
    assert again is not None
    mail.release(again)
    mail.claim(claimer="worker-1", lease_s=600.0)
    mail.put({"to": text}, key=text[:40], labels=[text[:20]], id="first")
    mail.put_many([{"to": f"{number}@example.org"} for number in range(120)])
    mail.put({"to": "later"}, id="delayed-1", delay_s=3_600.0)


def fill_tenants(client: ControlPlaneClient) -> None:
    """A queue of fair groups."""
    tenants = Queue.create("tenants", client=client)
    tenants.configure(groups="fair", group_limit=2)
    for group in ("acme", "bolt", "cask"):
        tenants.group(group).configure(weight=3 if group == "acme" else 1)
        for number in range(8):
            tenants.put(number, group=group)


def order(client: ControlPlaneClient) -> None:
    """A durable job that waits for a person."""
    app = Tasks("shop", queue="orders", client=client)

    @app.task(name="order")
    def order(job: JobContext, id: str) -> str:
        charge = job.step("charge", lambda: f"charge-{id}")
        return f"{charge} {job.wait('approved', str, timeout_s=7 * 86_400)}"

    order.using(id="order-17").put("o-17")
    app.run(until_empty=True, signals=False, schedules=False)


def live_workers(client: ControlPlaneClient) -> None:
    """Two workers in the registry, as their heartbeats leave them there."""
    for number, queues in enumerate((("mail", "orders"), ("tenants",)), 1):
        health = WorkerHealth("working", running=1, done=1_240 * number, failed=3, abandoned=0)
        live_worker(client, health, f"worker-{number}", queues)


def live_worker(
    client: ControlPlaneClient,
    health: WorkerHealth,
    name: str,
    queues: tuple[str, ...],
    *,
    host: str = "host.example",
    tasks: tuple[str, ...] = ("order", "send"),
) -> None:
    """A worker in the registry."""
    now = datetime.now(UTC)
    info = WorkerInfo(
        name=name,
        incarnation="i1",
        queue=queues[0],
        queues=queues,
        tasks=tasks,
        host=host,
        pid=os.getpid(),
        execution="threads",
        concurrency=8,
        started_at=now - timedelta(hours=5),
        seen_at=now,
        health=health,
    )
    client.store.execute(Write(WORKERS, [Change(encode_key((info.name, info.incarnation)), value=info.raw, ttl_s=3_600.0)]))
