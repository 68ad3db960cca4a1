"""For tests of Django sites: run the jobs that a test enqueued, here and now."""

from typing import Any

from holdfast._sync.handles.claims import QueueClaim
from holdfast._sync.handles.queue import Queue
from holdfast.integrations.django.backend import HoldfastBackend, task_at
from holdfast.integrations.django.running import delay_of, our_backend, read_path, run_here
from holdfast.testing.jobs import Drained
from holdfast.workers.handlers.outcomes import Bury, Snooze

MOST = 10_000
"""After so many jobs they are taken to enqueue each other for ever."""


def drain(backend: str = "default", *, queues: list[str] | None = None) -> Drained:
    """Run the jobs that are due, and those that these enqueue, in this thread and on its connections.

    So they are found in the transaction of a `TestCase`, too, and what they write is rolled back with it. A job that fails is run again
    if its back-off says at once, which is so by default; one that is due later is left.
    """
    ours = our_backend(backend)
    names = sorted(ours.queues) if queues is None else queues
    drained = Drained()
    for _ in range(MOST):
        turns = [one for one in (_run_one(ours, name) for name in names) if one is not None]
        if not turns:
            return drained
        drained = Drained(drained.done + turns.count(True), drained.failed + turns.count(False))
    raise RuntimeError(f"after {MOST} rounds there are still jobs: {drained}; do they enqueue each other?")


def _run_one(backend: HoldfastBackend, queue: str) -> bool | None:
    """Run the first job of a queue; whether that went well, None if there was none."""
    client = backend.place.near
    claim: QueueClaim[Any] | None = Queue(queue, client=client).claim(claimer="drain")
    if claim is None:
        return None
    message, value = claim.record, claim.value
    try:
        kept = run_here(backend, message, value["args"], value["kwargs"])
    except Snooze as snooze:
        claim.release(delay_s=snooze.delay_s)
        return False
    except Bury as error:
        with client.together() as step:
            step.bury(claim, error=str(error))
        return False
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a task raises ends its job, as in a worker
        task = task_at(str(read_path(message)), backend.alias, queue)
        claim.fail(error=f"{type(error).__name__}: {error}", delay_s=delay_of(error, backend, task, message.failures + 1))
        return False
    client.store.execute(kept)
    claim.ack()
    return True
