"""The workers of other libraries, by their documented calls, with the least of settings that each takes.

Each puts so many jobs in a queue of its own, and answers how many seconds one worker of that concurrency took until the last was run: what
it does after that, such as waiting for more, is not counted.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0


class Tally:
    """Counts jobs from any thread, and notices when the last was run."""

    def __init__(self, jobs: int) -> None:
        self._left = jobs
        # Guards the count.
        self._lock = threading.Lock()
        self._finished = threading.Event()
        self._told: Callable[[], object] = lambda: None

    def count(self, *_: Any, **__: Any) -> None:
        with self._lock:
            self._left -= 1
            is_last = self._left == 0
        if is_last:
            self._finished.set()
            self._told()

    async def count_async(self, *_: Any, **__: Any) -> None:
        self.count()

    def seconds(self, start: Callable[[], object]) -> float:
        """How long it takes from the start of a worker to the last job."""
        started = time.perf_counter()
        start()
        if not self._finished.wait(PATIENCE_S):
            message = f"{self._left} jobs were not run"
            raise TimeoutError(message)
        return time.perf_counter() - started

    async def seconds_async(self, work: Coroutine[Any, Any, object]) -> float:
        """The same of a worker that is a task, which is ended then."""
        everything = asyncio.Event()
        self._told = everything.set
        started = time.perf_counter()
        worker, end = asyncio.ensure_future(work), asyncio.ensure_future(everything.wait())
        # A worker that breaks ends before the last job.
        await asyncio.wait((worker, end), timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        took_s = time.perf_counter() - started
        if not everything.is_set():
            message = f"{self._left} jobs were not run by {worker}"
            raise TimeoutError(message)
        worker.cancel()
        await asyncio.wait((worker,), timeout=1.0)
        return took_s


def run_alone(work: Coroutine[Any, Any, float]) -> float:
    """Run a task, and leave what it began to the end of this process: `asyncio.run` would wait for workers that ignore a cancellation."""
    return asyncio.new_event_loop().run_until_complete(work)


def own_queue() -> str:
    """The name of a queue that no other process uses."""
    return f"bench-{os.getpid()}-{time.monotonic_ns()}"


def noop(_: int) -> None:
    """What a job of RQ does, which finds it by its name."""


def localqueue(folder: str, jobs: int, _: int) -> float:
    theirs: Any = import_module("localqueue")
    queue = theirs.PersistentQueue("jobs", store=theirs.SQLiteQueueStore(Path(folder) / "queue.sqlite3"))
    work = theirs.persistent_worker(queue, store_path=f"{folder}/retries.sqlite3", max_tries=3)(noop)
    for number in range(jobs):
        queue.put(number)
    started = time.perf_counter()
    for _ in range(jobs):
        work()
    return time.perf_counter() - started


def huey(folder: str, jobs: int, concurrency: int) -> float:
    theirs: Any = import_module("huey").SqliteHuey(filename=f"{folder}/huey.db")
    tally = Tally(jobs)
    work = theirs.task()(tally.count)
    for number in range(jobs):
        work(number)
    make: Any = import_module("huey.consumer").Consumer
    consumer = make(theirs, workers=concurrency, periodic=False, initial_delay=0.001, max_delay=0.01)
    took_s = tally.seconds(consumer.start)
    consumer.stop(graceful=False)
    return took_s


def rq(url: str, jobs: int, _: int) -> float:
    theirs, client = import_module("rq"), import_module("redis").Redis.from_url(url)
    queue = theirs.Queue(own_queue(), connection=client)
    for number in range(jobs):
        queue.enqueue(noop, number, result_ttl=0)
    worker = theirs.SimpleWorker([queue], connection=client)
    started = time.perf_counter()
    worker.work(burst=True, logging_level="ERROR", max_jobs=jobs)
    return time.perf_counter() - started


def dramatiq(url: str, jobs: int, concurrency: int) -> float:
    theirs: Any = import_module("dramatiq")
    broker = import_module("dramatiq.brokers.redis").RedisBroker(url=url)
    tally = Tally(jobs)
    actor = theirs.actor(tally.count, broker=broker, queue_name=own_queue(), actor_name="count")
    for number in range(jobs):
        actor.send(number)
    worker = theirs.Worker(broker, worker_threads=concurrency)
    took_s = tally.seconds(worker.start)
    worker.stop()
    return took_s


def arq(url: str, jobs: int, concurrency: int) -> float:
    async def run() -> float:
        settings = import_module("arq.connections").RedisSettings.from_dsn(url)
        queue, tally = own_queue(), Tally(jobs)
        pool = await import_module("arq").create_pool(settings, default_queue_name=queue)
        for number in range(jobs):
            await pool.enqueue_job("count", number)
        theirs = import_module("arq.worker")
        worker = theirs.Worker(
            [theirs.func(tally.count_async, name="count")],
            queue_name=queue,
            redis_settings=settings,
            burst=True,
            poll_delay=0.01,
            max_jobs=concurrency,
            keep_result=0,
            handle_signals=False,
        )
        return await tally.seconds_async(worker.main())

    return run_alone(run())


def saq(url: str, jobs: int, concurrency: int) -> float:
    async def run() -> float:
        theirs: Any = import_module("saq")
        queue, tally = theirs.Queue.from_url(url, name=own_queue()), Tally(jobs)
        await queue.connect()
        for number in range(jobs):
            await queue.enqueue("count", number=number, ttl=-1)
        worker = theirs.Worker(queue, functions=[("count", tally.count_async)], concurrency=concurrency)
        took_s = await tally.seconds_async(worker.start())
        await queue.disconnect()
        return took_s

    return run_alone(run())


def procrastinate(url: str, jobs: int, concurrency: int) -> float:
    async def run() -> float:
        theirs: Any = import_module("procrastinate")
        app = theirs.App(connector=theirs.PsycopgConnector(conninfo=url))
        queue, tally = own_queue(), Tally(jobs)

        async def count(number: int) -> None:
            await tally.count_async(number)

        task = app.task(count, name="count", queue=queue)
        async with app.open_async():
            if not await app.check_connection_async():
                await app.schema_manager.apply_schema_async()
            await task.batch_defer_async(*({"number": number} for number in range(jobs)))
            options = {"queues": [queue], "concurrency": concurrency, "delete_jobs": "successful", "install_signal_handlers": False}
            return await tally.seconds_async(app.run_worker_async(**options))

    return run_alone(run())
