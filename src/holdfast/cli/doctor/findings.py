"""What `holdfast doctor` looks for; each check reads, and changes nothing."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from holdfast._sync.flows.rating import each_rates
from holdfast.cli.doctor.finding import Finding
from holdfast.cli.doctor.schedules import schedule_findings
from holdfast.cli.queue_counts import queue_counts
from holdfast.commands import Browse
from holdfast.views.log_rates import LogMemory
from holdfast.wording import counted, seconds
from holdfast.workers.registry import functions_of, shown_functions

if TYPE_CHECKING:
    from holdfast import ControlPlaneClient, QueueRates, Stats, WorkerInfo

CLOCK_S: Final = 5.0
"""From here on the clocks of this machine and of the store are said to differ."""
OLD_S: Final = 3_600.0
"""A message that waits or is claimed for longer is worth a look."""
LEASES: Final = 1_000
"""So many names are looked at to find the lease that is held longest."""
LETTERS: Final = 1_000
"""So many dead letters of a queue are read to find out what they died of."""
ERRORS: Final = 3
"""So many kinds of errors are named."""


RATED: Final = 200
"""Of so many queues the events are read."""
SINCE_S: Final = 300.0
"""Those of so many seconds."""
LOST: Final = 3
"""So many claims that ended with their lease are worth a word,"""
LOST_SHARE: Final = 0.05
"""if they are so large a part of all."""


class QueueFacts(Struct, frozen=True):
    """What is known of one queue."""

    name: str
    stats: "Stats"
    served_by: int
    """How many living workers work on it."""
    functions: dict[str, list[str]] = {}
    """What they call for messages that name no task, with their names."""


def look(client: "ControlPlaneClient") -> Iterator[Finding]:
    """Every check, the store first."""
    from holdfast import Worker

    store = client.store
    yield from durability(store.guarantees)
    # Any answer that bears the time of the store.
    now = store.execute(Browse("default", limit=1)).now + store.wall_offset_us()
    yield clock(time.time_ns() // 1_000, now)
    living = Worker.list(client=client)
    facts = list(queues(client, living))
    for queue in facts:
        yield from queue_findings(queue)
        if queue.stats.dead:
            yield dead_letters(client, queue)
    for name, rates in each_rates(store, [queue.name for queue in facts[:RATED]], SINCE_S, LogMemory()).items():
        yield from lost_claims(name, rates)
    yield from schedule_findings(store, now, living)
    yield from lease_findings(client)
    yield from worker_findings(living, facts)


def lost_claims(queue: str, rates: "QueueRates") -> Iterator[Finding]:
    """Whether claims end with their lease, before their work does."""
    if rates.expired < LOST or rates.expired < LOST_SHARE * rates.claimed:
        return
    found = f"in the last {seconds(rates.window_s)} the lease of {counted(rates.expired, 'claim')} ended before the work did"
    told = "" if rates.p95_duration_s is None else f"; work takes up to {seconds(rates.p95_duration_s)}"
    remedy = (
        "Its workers are killed or stand still (see their log, and that of the system), or programs claim without renewing: "
        "then give them a longer lease_s."
    )
    yield Finding("warning", f"queue {queue}", f"{found}{told}", remedy)


def lease_findings(client: "ControlPlaneClient") -> Iterator[Finding]:
    """The lock, or other lease, that is held longest, if that is long."""
    from holdfast._sync.flows.listing import held_leases

    held = [(grant.since, one, grant) for one in held_leases(client.store, None, "", LEASES) for grant in one.holders if grant.since]
    if not held:
        return
    since, one, grant = min(held, key=lambda found: found[0])
    age_s = time.time() - since.timestamp()
    if one.kind != "election" and age_s > OLD_S:
        found = f"is held by {grant.holder} for {seconds(age_s)}, token {grant.token}"
        remedy = f"If that is longer than its work takes: `holdfast lock break {one.name} --kind {one.kind or 'lock'} --reason …`."
        yield Finding("warning", f"{one.kind or 'lease'} {one.name}", found, remedy)


def durability(guarantees: Any) -> Iterator[Finding]:
    """What acknowledged work survives, by the settings of the engine."""
    settings = ", ".join(f"{name}={value}" for name, value in guarantees.settings.items() if value)
    told = f"{guarantees.engine}; acknowledged work survives {SURVIVES[guarantees.survives]}{f' ({settings})' if settings else ''}"
    if guarantees.survives == "power":
        yield Finding("ok", "store", told)
    elif guarantees.survives == "process":
        yield Finding("notice", "store", told, "For work that must survive a loss of power, see the page of the store on durability.")
    else:
        remedy = "Set appendonly yes and appendfsync always (Redis), or use a store on a disk."
        yield Finding("warning", "store", told, remedy)
    if (policy := guarantees.settings.get("maxmemory-policy", "noeviction")) not in ("noeviction", "unknown"):
        yield Finding(
            "problem", "store", f"the server may evict data when its memory is full: maxmemory-policy={policy}", "Set noeviction."
        )


SURVIVES: Final = {"power": "a loss of power", "process": "the death of every process, not a loss of power", "nothing": "no restart"}


def clock(here_us: int, there_us: int) -> Finding:
    """Whether the machine agrees with the store about the time."""
    apart_s = abs(here_us - there_us) / 1_000_000
    if apart_s < CLOCK_S:
        return Finding("ok", "clock", f"this machine and the store differ by {seconds(apart_s)}")
    remedy = "Let both synchronise their clocks (NTP). Leases are safe: the store alone measures them; times that people see are not."
    return Finding("warning", "clock", f"this machine and the store differ by {seconds(apart_s)}", remedy)


def queues(client: "ControlPlaneClient", living: "Sequence[WorkerInfo]") -> Iterator[QueueFacts]:
    """Every queue with its sizes and its workers."""
    for queue in queue_counts(client.store):
        served_by = sum(worker.serves(queue.name) for worker in living)
        yield QueueFacts(queue.name, queue.stats, served_by, functions_of(living, queue.name))


def queue_findings(queue: QueueFacts) -> Iterator[Finding]:
    """What is stuck in one queue."""
    about, stats = f"queue {queue.name}", queue.stats
    if len(queue.functions) > 1:
        found = f"its workers call different functions for the same messages: {shown_functions(queue.functions)}"
        yield Finding("problem", about, found, "Give each function a queue of its own, or make them tasks of Tasks.")
    if stats.ready and not queue.served_by and not stats.leased:
        oldest = seconds(stats.oldest_ready_s or 0.0)
        found = f"{counted(stats.ready, 'message')} ready, the oldest for {oldest}, and no living worker serves it"
        yield Finding(
            "problem", about, found, "Start a worker for it: `holdfast worker …`, or remove what is not needed: `holdfast queue purge`."
        )
    elif (stats.oldest_ready_s or 0.0) > OLD_S:
        found = f"its oldest ready message waits for {seconds(stats.oldest_ready_s or 0.0)}"
        yield Finding(
            "warning", about, found, f"Add workers, or see why: `holdfast queue explain {queue.name} ID` (and whether it is paused)."
        )
    if (stats.oldest_leased_s or 0.0) > OLD_S:
        holder = max(stats.holders, key=lambda name: stats.holders[name], default="?")
        found = f"a claim is held for {seconds(stats.oldest_leased_s or 0.0)}; most are held by {holder}"
        remedy = "If that is longer than a job takes, it hangs and is renewed: give the worker hard_limit_s or max_hold_s."
        yield Finding("warning", about, found, remedy)


def dead_letters(client: "ControlPlaneClient", queue: QueueFacts) -> Finding:
    """What the dead letters of a queue died of."""
    from holdfast import Queue

    letters = Queue.from_name(queue.name, client=client).dead_letters(limit=LETTERS)
    kinds = Counter((letter.last_error or "no error").split(":", 1)[0] for letter in letters)
    named = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(ERRORS))
    found = f"{counted(queue.stats.dead, 'dead letter')}; of the {'oldest ' if queue.stats.dead > LETTERS else ''}{len(letters):,}: {named}"
    remedy = f"See them with `holdfast queue dead {queue.name}`; after a fix `holdfast queue redrive {queue.name} --error TEXT`."
    return Finding("warning", f"queue {queue.name}", found, remedy)


def worker_findings(living: "Sequence[WorkerInfo]", facts: Sequence[QueueFacts]) -> Iterator[Finding]:
    """Workers that cannot work, and how many there are."""
    served = sum(queue.served_by > 0 for queue in facts)
    yield Finding("ok", "workers", f"{counted(len(living), 'living worker')} on {counted(served, 'queue')} of {len(facts)}")
    for one in living:
        about = f"worker {one.name}"
        if one.health.state in ("paused", "open", "away"):
            remedy = "An open circuit breaker closes by itself once a job succeeds." if one.health.state == "open" else ""
            yield Finding("warning", about, f"is {one.health.state}{f': {one.health.error}' if one.health.error else ''}", remedy)
        if one.health.abandoned:
            found = f"{counted(one.health.abandoned, 'handler')} ran over their limit and cannot be ended: they still use threads"
            yield Finding("warning", about, found, 'Restart it, and run such functions with execution="processes".')
