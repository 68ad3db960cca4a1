"""Test helpers for programs that put jobs: run due jobs synchronously, or check that they were put."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.task import AsyncTask
from holdfast._async.handles.tasks import AsyncTasks
from holdfast._async.handles.worker import AsyncWorker
from holdfast._sync.handles.queue import Queue
from holdfast._sync.handles.task import Task
from holdfast._sync.handles.tasks import Tasks
from holdfast._sync.handles.worker import Worker
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec
from holdfast.commands import Browse, Claim, Read
from holdfast.results import MISSING, QueueMessage
from holdfast.testing.clock import FakeClock
from holdfast.workers.orders import Orders, chosen_queues
from holdfast.workers.steps.rows import FOREVER_S, decode_head, head_key, steps_of
from holdfast.workers.task_options import arguments_of

AnyQueue = Queue[Any] | AsyncQueue[Any]
AnyWorker = Worker[Any, Any, Any] | AsyncWorker[Any, Any, Any]
AnyTask = Task[..., Any, Any] | AsyncTask[..., Any, Any]

ROUNDS = 1_000
"""After so many rounds jobs are taken to put each other for ever."""

LOOKS = 20
"""After so many looks in vain the children of a durable job are taken to wait for something that does not come."""

PAGE = 1_000


class Drained(Struct, frozen=True):
    """How many executions ended well, and how many in a failure."""

    done: int = 0
    failed: int = 0


class Drain:
    """Runs the jobs of workers in this test's store until none is due."""

    def __init__(self, client: ControlPlaneClient, clock: FakeClock) -> None:
        self._client = client
        self._clock = clock
        self._looks = 0

    def __call__(self, *workers: AnyWorker | Tasks | AsyncTasks, queues: Sequence[str] | None = None, delayed: bool = False) -> Drained:
        """Run what is due, and what that puts for any of them; with `delayed` move the clock to whatever is due later, too.

        With `queues` only the jobs of these are run, and what is in the other queues of the workers stays there.
        """
        orders = [(one.worker() if isinstance(one, Tasks | AsyncTasks) else one).orders for one in workers]
        return self._drain(orders if queues is None else _within(orders, queues), delayed=delayed)

    def _drain(self, workers: Sequence[Orders], *, delayed: bool) -> Drained:
        drained = Drained()
        for _ in range(ROUNDS):
            rounds = [self._run(worker) for worker in workers]
            done, failed = sum(one.done for one in rounds), sum(one.failed for one in rounds)
            drained = Drained(drained.done + done, drained.failed + failed)
            if not done and not failed and not (delayed and self._move_to_next(workers)):
                return drained
        raise RuntimeError(f"after {ROUNDS} rounds there are still jobs: {drained}; do they put each other, or always snooze?")

    def _run(self, worker: Orders) -> Drained:
        # For threads, whatever kind it is: a test has no event loop to run it on.
        own = Worker.of_orders(replace(worker, heartbeat_s=None), client=self._client)
        own.run(until_empty=True, signals=False)
        return Drained(own.health.done, own.health.failed)

    def _move_to_next(self, workers: Sequence[Orders]) -> bool:
        # A claim that finds nothing says when to come again.
        queues = [queue for worker in workers for queue in worker.queues]
        claims = [(queue, self._client.store.execute(Claim(queue, "drain", 1.0))) for queue in queues]
        due = [(claimed.due_in_s, queue) for queue, claimed in claims if claimed.due_in_s is not None and claimed.due_in_s < FOREVER_S / 2]
        if not due:
            return False
        due_in_s, queue = min(due)
        self._looks = self._looks + 1 if self._only_looks(queue) else 0
        if self._looks > LOOKS:
            return False
        self._clock.advance(max(0.0, due_in_s))
        return True

    def _only_looks(self, queue: str) -> bool:
        """Whether the next job of a queue is a durable one that wakes to look at its children."""
        waiting = self._client.store.execute(Browse(queue)).messages
        if not waiting:
            return False
        first = min(waiting, key=lambda message: message.position)
        heads = self._client.store.execute(Read(steps_of(queue), [head_key(first.id)])).entries
        return bool(heads) and decode_head(heads[0].value).looks


def _within(workers: Sequence[Orders], queues: Sequence[str]) -> list[Orders]:
    """The orders of these workers for some of their queues; ValueError for a queue that none of them serves."""
    for queue in chosen_queues(queues, ())[0]:
        if not any(queue in worker.queues for worker in workers):
            raise ValueError(
                f"none of these workers serves queue {queue!r}: {', '.join(sorted({q for one in workers for q in one.queues}))}"
            )
    found = []
    for worker in workers:
        kept = tuple(queue for queue in worker.queues if queue in queues)
        weights = None if worker.weights is None or len(kept) == 1 else {queue: worker.weights[queue] for queue in kept}
        found += [replace(worker, queues=kept, weights=weights)] if kept else []
    return found


class AssertPut:
    """Looks at what waits in the queues of this test's store."""

    def __init__(self, client: ControlPlaneClient) -> None:
        self._client = client

    def __call__(
        self,
        queue: str | AnyQueue | AnyTask | AnyWorker,
        value: Any = MISSING,
        *,
        times: int | None = None,
        **fields: Any,
    ) -> list[QueueMessage]:
        """Fail unless a message with this value waits in the queue, or exactly `times` of them; return those found.

        The queue is given by name, as a handle, or as its worker; it is looked up in the test's store. Other `fields` are those of
        `QueueMessage`: `key=`, `priority=`, `metadata=`, … A message that was run is gone, and not found. For a task the fields are
        arguments of its jobs: `assert_put(send, to="ann")`.
        """
        if isinstance(queue, Task | AsyncTask):
            return self._calls(queue, fields, times)
        wanted = fields if value is MISSING else {"value": value, **fields}
        unknown = wanted.keys() - set(QueueMessage.__struct_fields__)
        if unknown:
            raise TypeError(f"a message has no {', '.join(sorted(unknown))}")
        name, codec = _named(queue)
        waiting = self._waiting(Queue(name, codec=codec, client=self._client))
        found = [message for message in waiting if all(getattr(message, field) == wish for field, wish in wanted.items())]
        if not found if times is None else len(found) != times:
            raise AssertionError(_told(name, wanted, times, len(found), waiting))
        return found

    def _calls(self, task: AnyTask, arguments: dict[str, Any], times: int | None) -> list[QueueMessage]:
        """The jobs of a task with these arguments, among others."""
        unknown = arguments.keys() - set(arguments_of(task.options).parameters)
        if unknown:
            raise TypeError(f"task {task.name} has no parameter {', '.join(sorted(unknown))}")
        waiting = self._waiting(Queue(task.queue, client=self._client))
        own = [one for one in waiting if (one.metadata or {}).get("task") == task.name]
        wanted = {name: JSON.decode(JSON.encode(wish)) for name, wish in arguments.items()}
        found = [one for one in own if all(name in one.value and one.value[name] == wish for name, wish in wanted.items())]
        if not found if times is None else len(found) != times:
            raise AssertionError(_told(task.queue, arguments, times, len(found), own))
        return found

    def _waiting(self, queue: Queue[Any]) -> list[QueueMessage]:
        return [message for state in ("ready", "leased", "buffered") for message in queue.browse(state=state, limit=PAGE)]


def _named(queue: str | AnyQueue | AnyWorker) -> tuple[str, Codec]:
    if isinstance(queue, str):
        return queue, JSON
    if isinstance(queue, Worker | AsyncWorker):
        return queue.queue, queue.options.handler.codec
    return queue.name, vars(queue)["_codec"]


def _told(name: str, wanted: dict[str, Any], times: int | None, found: int, waiting: list[QueueMessage]) -> str:
    what = ", ".join(f"{field}={wish!r}" for field, wish in wanted.items()) or "any message"
    there = "\n".join(f"  {message.value!r} (key={message.key!r})" for message in waiting) or "  nothing"
    how_often = "none" if times is None else f"{found}, not {times},"
    return f"{how_often} of {what} in queue {name!r}; there wait\n{there}"
