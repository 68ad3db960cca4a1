"""What stores keep since 0.1.0, for tools/stored_forms.py; code of 0.1.0 cannot import this, and writes none of it."""

from collections.abc import Callable
from typing import Any

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast import Backoff, JobContext, Limiter, Rate, Schedule, Tasks
from holdfast._sync.flows.schedule_book import schedule_of
from holdfast.codec import encode_key
from holdfast.commands import Acquire, Browse, Claim, Command, Configure, Groups, Item, Leases, Names, Prune, Put, Resize, Settle
from holdfast.schedules.rules import Every
from holdfast.stores import Store

Ask = Callable[[Command[Any]], Any]

YEAR_S = 365 * 86_400.0
LONG_S = 90 * YEAR_S
HOUR_US = 3_600_000_000
FREE = Rate(1_000, per_s=1.0, burst=1_000)
"""A rate that holds nobody up."""
SCARCE = Rate(1, per_s=10 * YEAR_S, burst=2)
"""A rate that is used up when it was used twice."""
GPU, POOL = encode_key(("semaphore", "gpu")), encode_key(("semaphore", "pool"))


def write_newer(ask: Ask, url: str, store: Store) -> dict[str, Any]:
    """Write all of it; what it is known by."""
    write_lines(ask)
    shares = write_shares(ask)
    ask(Prune())  # Counts what is there.
    Limiter("published", SCARCE, base_url=url).acquire(key="ann", cost=2)
    return write_groups(ask) | shares | write_jobs(url) | write_schedules(url, store)


def snapshot_newer(store: Store) -> dict[str, Any]:
    """What can be read of it besides what a snapshot of 0.1.0 has."""
    queues = [each.name for each in store.execute(Names("queue")).settings]
    return {
        "done": {name: store.execute(Browse(name, state="done")).messages for name in queues},
        "groups": {name: store.execute(Groups(name)).lanes for name in queues},
        "held": store.execute(Leases()).held,
    }


def put(ask: Ask, queue: str, *ids: str, **options: Any) -> None:
    """Put messages whose value is their id."""
    ask(Put(queue, [Item(name, Raw(json.encode(name)), **options) for name in ids]))


def claim(ask: Ask, queue: str, limit: int = 1) -> list[Any]:
    """Claim for as long as the tests are run."""
    return list(ask(Claim(queue, "worker-4", LONG_S, limit, expired_to="back")).messages)


def write_groups(ask: Ask) -> dict[str, Any]:
    """Queues with groups: some are claimed, done, paused, throttled, used up, waiting, or held by a dead message."""
    limits: dict[str, Any] = {"limit": 6, "rate": FREE, "group_limit": 2, "group_rate": FREE}
    again: dict[str, Any] = {"max_attempts": 5, "dead_letter": "graves", "backoff": Backoff(60.0, 2.0, 600.0)}
    ask(Configure("queue", "fair", groups="fair", lease_s=LONG_S, late_to="dead", keep_done_s=LONG_S, **limits, **again))
    ask(Configure("queue", "fair", group="a", weight=4, limit=3, rate=FREE))
    put(ask, "fair", "a1", "a2", "a3", "a4", group="a", labels=("red", "urgent"))
    put(ask, "fair", "b1", "b2", group="b")
    put(ask, "fair", "c1", group="c", delay_s=LONG_S)
    put(ask, "fair", "d1", group="d")
    put(ask, "fair", "high", priority=7)
    ask(Configure("queue", "fair", group="d", throttle_s=LONG_S))
    done, failed, *held = claim(ask, "fair", 5)
    ask(Settle([done.receipt], trace="a traceback"))
    ask(Settle([failed.receipt], "ready", error="ValueError: no", counts=True, delay_s=LONG_S, trace="another"))
    ask(Configure("queue", "fair", group="b", paused=True))
    ask(Configure("queue", "strict", groups="strict", group_dead="hold"))
    put(ask, "strict", "x1", "x2", group="x")
    put(ask, "strict", "y1", "y2", group="y")
    buried, first = claim(ask, "strict", 2)
    ask(Settle([buried.receipt], "dead", error="KeyError: 'x'"))
    return {"fair": [message.receipt for message in held], "done": done.id, "failed": failed.id, "strict": first.receipt}


def write_lines(ask: Ask) -> None:
    """Queues with other policies, labels, and a key that is unique for a while."""
    ask(Configure("queue", "stack", order="lifo", aging_s=3_600.0))
    put(ask, "stack", "s1")
    put(ask, "stack", "s2", priority=2)
    ask(Configure("queue", "halted", limit=3, paused=True, throttle_s=LONG_S))
    put(ask, "halted", "h1")
    put(ask, "labelled", "l1", labels=("red",), group="g")
    put(ask, "unique", "u1", key="digest", unique_for_s=LONG_S)
    ask(Settle([message.receipt for message in claim(ask, "unique")]))


def write_shares(ask: Ask) -> dict[str, Any]:
    """A semaphore with a holder and a waiter, and one that is not in use and whose capacity was set."""
    acquire = [Acquire(None, GPU, f"holder-{n}", f"gpu-{n}", LONG_S, capacity=3, weight=2, in_line_s=LONG_S) for n in (1, 2)]
    granted, _ = [ask(command).lease.token for command in acquire]
    ask(Resize(POOL, 5))
    return {"gpu": granted}


def tasks_of(url: str, charge: Callable[[str], str]) -> Tasks:
    """The tasks whose jobs are kept, some of them in the middle; `charge` is what a step calls."""
    app = Tasks("stored", base_url=url, queue="stored", keep_result_s=LONG_S)

    @app.task(name="stored.double")
    def double(number: int) -> int:
        return 2 * number

    @app.task(name="stored.later", queue="later")
    def later(number: int) -> int:
        return number + 1

    @app.task(name="stored.merge")
    def merge(left: int, right: int) -> list[int]:
        return [left, right]

    @app.task(name="stored.pay")
    def pay(job: JobContext, order: str) -> str:
        paid = job.step("charge", charge, order)
        return f"{paid}, approved by {job.wait('approved', str)}"

    return app


def write_jobs(url: str) -> dict[str, Any]:
    """A durable job that waits for a signal, and a flow of which one node is done and the next one is in a queue that nobody serves."""
    app = tasks_of(url, lambda order: f"{order} is charged")
    double, later, merge, pay = (app.find(f"stored.{name}") for name in ("double", "later", "merge", "pay"))
    payment = pay.put("order 1")
    flow = app.flow("doubled")
    left = flow.add(double.args(4), name="left")
    right = flow.add(later.args(left), name="right")
    flow.add(merge.args(left, right), name="both")
    graph = flow.put()
    app.run(queues=["stored"], until_empty=True)
    return {"payment": payment.id, "flow": graph.id}


def write_schedules(url: str, store: Store) -> dict[str, Any]:
    """A schedule whose next run is due, and one that is paused."""
    Schedule("hourly", Every(hours=1), ("reports", {"kind": "hourly"}), base_url=url).save()
    Schedule("nightly", "0 3 * * *", ("reports", 1), tz="Europe/Berlin", jitter_s=60.0, base_url=url).save()
    Schedule.from_name("nightly", base_url=url).pause("on holiday")
    stored = schedule_of(store, "hourly")
    if stored is not None:
        store.execute(stored.write(replace(stored.entry, last=stored.entry.last - 2 * HOUR_US)))
    return {"schedules": ["hourly", "nightly"]}
