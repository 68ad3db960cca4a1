"""Sets of scopes for common purposes."""

from msgspec import Struct

from holdfast.workers.names import breaker_of, errors_of, ledger_of, progress_of, results_of
from holdfast.workers.registry import WORKERS
from holdfast.workers.running.settlements import CANCELS
from holdfast.workers.steps.rows import maps_prefix, signals_of, steps_of


class Grant(Struct, frozen=True):
    """A scope, and what it is needed for."""

    scope: str
    reason: str


def worker_grants(queue: str) -> list[Grant]:
    """What a worker of the queue needs, whatever its options; a dead-letter queue and dicts of its own need scopes of their own."""
    return [
        Grant(f"queue:{queue}:claim,read", "claim, renew and settle jobs, wait for them"),
        Grant(f"dict:{WORKERS}:read,write", "show that the worker is alive, and notice workers with other functions"),
        Grant(f"dict:{CANCELS}:read,write", "learn that a running job is to be cancelled"),
        Grant(f"dict:{results_of(queue)}:write", "store results (`results=True`)"),
        Grant(f"dict:{errors_of(queue)}:write", "store errors with their tracebacks (`tracebacks=False` does not)"),
        Grant(f"dict:{progress_of(queue)}:write", "store reports (`job.report`)"),
        Grant(f"dict:{ledger_of(queue)}:read,write", "remember finished effects (`idempotent=True`)"),
        Grant(f"dict:{breaker_of(queue)}:read,write,hold", "share a breaker (`Breaker(shared=True)`)"),
    ]


def durable_grants(queue: str) -> list[Grant]:
    """What a worker of the queue needs besides, if its jobs are durable and call only tasks of the same queue."""
    return [
        Grant(f"dict:{steps_of(queue)}:read,write", "record the steps of durable jobs (`job.step`)"),
        Grant(f"dict:{signals_of(queue)}:read,write", "receive signals, and report to parents (`job.wait`, `job.call`)"),
        Grant(f"queue:{queue}:put,signal", "start child jobs, and wake the jobs that wait for them (`job.call`)"),
        Grant(f"dict:{results_of(queue)}:read", "find the results of child jobs (`job.call`)"),
        Grant(f"dict:{maps_prefix(queue)}*:read,write,manage", "collect the results of many child jobs (`job.map`)"),
    ]
