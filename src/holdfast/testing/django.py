"""For tests of Django sites: run the jobs that a test enqueued, here and now."""

from typing import Any, TypeVar, cast

from asgiref.sync import async_to_sync, sync_to_async
from msgspec import Raw

from holdfast._sync.flows.working.stepping import step
from holdfast.backoff import Backoff
from holdfast.commands import Claim, Command
from holdfast.holding.hold import Hold, monotonic_s
from holdfast.integrations.django.backend import HoldfastBackend, task_at
from holdfast.integrations.django.records import said_by
from holdfast.integrations.django.running import function_of, our_backend
from holdfast.records import Message
from holdfast.stores.caller_transaction import AsyncConnection, Connection
from holdfast.testing.jobs import Drained
from holdfast.workers.handlers.arguments import TaskHandler
from holdfast.workers.handlers.async_jobs import AsyncJobContext
from holdfast.workers.handlers.handler import Performance, Rules
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.handlers.outcomes import How
from holdfast.workers.orders import Options
from holdfast.workers.running.running_jobs import Crew
from holdfast.workers.running.runs import DONE, FAILED, Run
from holdfast.workers.running.settlements import decided, settling_commands
from holdfast.workers.steps.access import StepSetting

R = TypeVar("R")

MOST = 10_000
"""After so many jobs they are taken to enqueue each other for ever."""

LEASE_S = 60.0

AT_ONCE = Backoff(first_s=0.0)


class Here:
    """Executes commands of steps where the test is: on its connections, in its transaction."""

    def __init__(self, backend: HoldfastBackend) -> None:
        self._place = backend.place

    def execute(self, command: Command[R], connection: Connection | None = None) -> R:
        return (self._place if connection is None else self._place.on(connection)).execute(command)


class HereForTasks:
    """The same for async tasks, whose event loop has no connections."""

    def __init__(self, here: Here) -> None:
        self._here = here

    async def execute(self, command: Command[R], connection: AsyncConnection | None = None) -> R:
        return await sync_to_async(self._here.execute)(command, cast("Connection | None", connection))


def drain(backend: str = "default", *, queues: list[str] | None = None) -> Drained:
    """Run the jobs that are due, and those that these enqueue, in this thread and on its connections.

    So they are found in the transaction of a `TestCase`, too, and what they write is rolled back with it. A job that fails is run again
    if its back-off says at once, which is so by default; one that is due later is left, also one that sleeps or waits for a signal.
    """
    ours = our_backend(backend)
    names = sorted(ours.queues) if queues is None else queues
    drained = Drained()
    for _ in range(MOST):
        ended = [how for how in (_run_one(ours, name) for name in names) if how is not None]
        if not ended:
            return drained
        done, failed = (sum(how in group for how in ended) for group in (DONE, FAILED))
        drained = Drained(drained.done + done, drained.failed + failed)
    raise RuntimeError(f"after {MOST} rounds there are still jobs: {drained}; do they enqueue each other?")


def _run_one(backend: HoldfastBackend, queue: str) -> How | None:
    """Run the first job of a queue; how that ended, None if there was none."""
    started = monotonic_s()
    claimed = backend.place.execute(Claim(queue, "drain", LEASE_S)).messages
    if not claimed:
        return None
    run = _run_of(backend, claimed[0], started)
    if run.options.handler.is_async:
        outcome = async_to_sync(run.performance.run_async)(cast("AsyncJobContext", run.job))
    else:
        outcome = run.performance.run(run.job)
    if isinstance(run.job.raised, KeyboardInterrupt):
        raise run.job.raised  # It is for the test run.
    if outcome.how not in ("settled", "lost"):
        step(backend.place.near.store, [(run, decided(run, outcome))], [])
    return outcome.how


def _run_of(backend: HoldfastBackend, message: Message, started: float) -> Run:
    task = task_at(str(said_by(message).get("task")), backend.alias, message.queue)
    said, handler, here = backend.options_of(task), TaskHandler(function_of(backend, task)), Here(backend)
    options = Options(
        queue=message.queue,
        handler=handler,
        execution="tasks" if handler.is_async else "threads",
        max_attempts=said["max_attempts"],
        backoff=said["backoff"] or AT_ONCE,
        tracebacks=False,
    )
    setting = StepSetting(access=here, async_access=HereForTasks(here), now=monotonic_s, lease_s=LEASE_S, in_place_s=0.0)
    job = handler.job(message, setting, started)
    run = Run(
        message, Hold(message.receipt, LEASE_S, started), job, options, performance=Performance(handler, Rules()), crew=cast("Crew", None)
    )
    job.durable.owner = RunInTest(run)
    return run


class RunInTest:
    """What a job asks of the test that runs it."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def report(self, job: JobContext, progress: Raw) -> None:
        """Nobody looks."""

    def settling(self, job: JobContext, result: Any) -> list[Any]:
        """What ends the job in the transaction of the test."""
        return settling_commands([(self._run, self._run.performance.succeeded(result, job))], {})
