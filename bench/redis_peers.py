"""Job libraries on Redis, by their documented calls, with the least of settings that each takes: batches where it has them."""

import asyncio
import re
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import redis

from bench.crews import Crew
from bench.job_libraries import OnLoop, Peer, Peers, Span, compare_peer
from bench.measure import Figure, Run
from bench.networked import OurQueue
from bench.ours import QUEUE, VALUE
from holdfast.testing.servers.redis import RedisServer, found_binaries

TEXT = VALUE.decode()
ONE_BY_ONE = (1,)


def noop(_: str) -> None:
    """What a job does, for libraries that find it by its name."""


async def noop_task(_: str) -> None:
    """What a job does, for libraries of tasks."""


class Rq:
    """The calls that its worker makes, which takes and finishes jobs one by one."""

    def __init__(self, url: str) -> None:
        theirs: Any = import_module("rq")
        client = redis.Redis.from_url(url)
        self._queue = theirs.Queue(QUEUE, connection=client)
        self._worker = theirs.SimpleWorker([self._queue], connection=client)

    def put(self, size: int) -> int:
        if size == 1:
            self._queue.enqueue(noop, TEXT, result_ttl=0)
        else:
            self._queue.enqueue_many([self._queue.prepare_data(noop, (TEXT,), result_ttl=0) for _ in range(size)])
        return size

    def cycle(self, size: int) -> int:
        for done in range(size):
            found = self._worker.dequeue_job_and_maintain_ttl(None)
            if found is None:
                return done
            self._worker.execute_job(*found)
        return size

    def close(self) -> None:
        self._queue.connection.close()


class Dramatiq:
    """Messages of its broker, fetched as many at a time as are wanted, and acknowledged one by one."""

    def __init__(self, url: str) -> None:
        self._broker: Any = import_module("dramatiq.brokers.redis").RedisBroker(url=url)
        self._actor: Any = import_module("dramatiq").actor(noop, broker=self._broker, queue_name=QUEUE)
        self._consumers: dict[int, Any] = {}

    def put(self, size: int) -> int:
        for _ in range(size):
            self._actor.send(TEXT)
        return size

    def cycle(self, size: int) -> int:
        if size not in self._consumers:
            self._consumers[size] = self._broker.consume(QUEUE, prefetch=size, timeout=1)
        consumer = self._consumers[size]
        for done in range(size):
            message = next(consumer)
            if message is None:
                return done
            consumer.ack(message)
        return size

    def close(self) -> None:
        self._broker.close()


class Saq(OnLoop):
    """The calls that its worker makes, which takes and finishes jobs one by one."""

    def __init__(self, url: str) -> None:
        super().__init__()
        theirs: Any = import_module("saq")
        self._active, self._done = theirs.Status.ACTIVE, theirs.Status.COMPLETE
        self._queue = theirs.Queue.from_url(url, name=QUEUE)
        self.wait(self._queue.connect())

    def put(self, size: int) -> int:
        for _ in range(size):
            self.wait(self._queue.enqueue("noop", value=TEXT, ttl=-1))
        return size

    def cycle(self, size: int) -> int:
        return self.wait(self._cycle(size))

    async def _cycle(self, size: int) -> int:
        for done in range(size):
            job = await self._queue.dequeue(timeout=0.01)
            if job is None:
                return done
            await job.update(status=self._active)
            await job.finish(self._done)
        return size

    def close(self) -> None:
        self.wait(self._queue.disconnect())


class OnlyPuts(OnLoop):
    """A peer that hands no job out, and puts one at a time."""

    def put(self, size: int) -> int:
        for _ in range(size):
            self.wait(self._put())
        return size

    async def _put(self) -> None:
        raise NotImplementedError

    def cycle(self, _: int) -> int:
        """Nothing."""
        return 0

    def close(self) -> None:
        """Nothing: its connection ends with the process."""


class Arq(OnlyPuts):
    """Jobs with ids of its own making."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._pool: Any = self.wait(import_module("arq").create_pool(arq_settings(url)))

    async def _put(self) -> None:
        await self._pool.enqueue_job("noop", TEXT)


def arq_settings(url: str) -> Any:
    return import_module("arq.connections").RedisSettings.from_dsn(url)


def run_arq(url: str, jobs: int, concurrency: int) -> float:
    async def run() -> float:
        theirs, span = import_module("arq.worker"), Span(jobs)
        worker = theirs.Worker(
            [theirs.func(span.count_async, name="noop")],
            redis_settings=arq_settings(url),
            poll_delay=0.01,
            max_jobs=concurrency,
            keep_result=0,
            handle_signals=False,
        )
        return await span.rate_beside(worker.main())

    return asyncio.run(run())


class Taskiq(OnlyPuts):
    """Tasks in a list."""

    def __init__(self, url: str) -> None:
        super().__init__()
        broker = taskiq_broker(url)
        self._task = broker.register_task(noop_task, task_name="noop")
        self.wait(broker.startup())

    async def _put(self) -> None:
        await self._task.kiq(TEXT)


def taskiq_broker(url: str) -> Any:
    return import_module("taskiq_redis").ListQueueBroker(url, queue_name=QUEUE)


def run_taskiq(url: str, jobs: int, concurrency: int) -> float:
    async def run() -> float:
        broker, span = taskiq_broker(url), Span(jobs)

        async def count(value: str) -> None:
            span.count(value)

        broker.register_task(count, task_name="noop")
        await broker.startup()
        rate = await span.rate_beside(import_module("taskiq.api").run_receiver_task(broker, max_async_tasks=concurrency))
        await broker.shutdown()
        return rate

    return asyncio.run(run())


class Streaq(OnLoop):
    """Tasks in a stream; several go out as one pipeline."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._client = streaq_worker(url)
        self._task = self._client.task(name="noop")(noop_task)
        self._is_open, self._is_over = asyncio.Event(), asyncio.Event()
        self._connection = self._loop.create_task(self._stay_open())
        self.wait(self._is_open.wait())

    async def _stay_open(self) -> None:
        async with self._client:
            self._is_open.set()
            await self._is_over.wait()

    def put(self, size: int) -> int:
        self.wait(self._put(size))
        return size

    async def _put(self, size: int) -> None:
        if size == 1:
            await self._task.enqueue(TEXT)
        else:
            await self._client.enqueue_many([self._task.enqueue(TEXT) for _ in range(size)])

    def cycle(self, _: int) -> int:
        """Nothing: it hands no job out."""
        return 0

    def close(self) -> None:
        self._is_over.set()
        self.wait(asyncio.wait_for(self._connection, 1.0))


def streaq_worker(url: str, concurrency: int = 1) -> Any:
    return import_module("streaq").Worker(redis_url=url, concurrency=concurrency, queue_name=QUEUE, handle_signals=False)


def run_streaq(url: str, jobs: int, concurrency: int) -> float:
    async def run() -> float:
        worker, span = streaq_worker(url, concurrency), Span(jobs)
        worker.task(name="noop", ttl=0)(span.count_async)
        return await span.rate_beside(worker.run_async())

    return asyncio.run(run())


class Celery:
    """Tasks of an app without a result backend."""

    def __init__(self, url: str) -> None:
        self._task = celery_app(url).task(noop, name="noop")

    def put(self, size: int) -> int:
        for _ in range(size):
            self._task.delay(TEXT)
        return size

    def cycle(self, _: int) -> int:
        """Nothing: it hands no job out."""
        return 0

    def close(self) -> None:
        self._task.app.close()


def celery_app(url: str) -> Any:
    app = import_module("celery").Celery("bench", broker=url, backend=None)
    app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False, task_acks_late=True, task_default_queue=QUEUE)
    return app


def run_celery(url: str, jobs: int, concurrency: int) -> float:
    app, span = celery_app(url), Span(jobs)

    def count(value: str) -> None:
        span.count(value)

    app.task(count, name="noop")
    pool = "solo" if concurrency == 1 else "threads"
    with import_module("celery.contrib.testing.worker").start_worker(app, concurrency, pool, perform_ping_check=False):
        return span.rate()


PEERS: Peers = {
    "RQ": Peer("rq", Rq),
    "arq": Peer("arq", Arq, run_arq, sizes=ONE_BY_ONE),
    "SAQ": Peer("saq", Saq, sizes=ONE_BY_ONE),
    "streaq": Peer("streaq", Streaq, run_streaq),
    "Dramatiq": Peer("dramatiq", Dramatiq, sizes=ONE_BY_ONE),
    "taskiq": Peer("taskiq_redis", Taskiq, run_taskiq, sizes=ONE_BY_ONE),
    "Celery": Peer("celery", Celery, run_celery, sizes=ONE_BY_ONE),
}

NEWER = ("streaq",)
"""Those that need Redis 7 or newer, or Valkey: they keep their scripts there as functions."""


def newer_binary() -> Path | None:
    """A server that has them, if there is one here."""
    return next((binary for binary in found_binaries() if is_newer(binary)), None)


def is_newer(binary: Path) -> bool:
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"v=(\d+)", said)
    return version is not None and int(version[1]) >= 7


def beside(run: Run, _: str) -> Iterator[Figure]:
    """Ours and each peer, round by round, on a server that only they use."""
    for name, peer in PEERS.items():
        if not peer.is_installed or not run.wants(name):
            continue
        binary = newer_binary() if name in NEWER else found_binaries()[0]
        if binary is None:
            run.tell(f"{name} is left out: it needs Redis 7 or Valkey, and none was found")
            continue
        with RedisServer(binary) as server:
            yield from beside_one(run, name, peer, server.url)


def beside_one(run: Run, name: str, peer: Peer, url: str) -> Iterator[Figure]:
    most, place = max(run.sizes.crews), f"{url.removesuffix('0')}1"
    # Working off what is left would take some of them minutes.
    with redis.Redis.from_url(place) as client, Crew(OurQueue, url, most) as ours, Crew(peer.make, place, most, client.flushdb) as theirs:
        yield from compare_peer(run, name, peer, ours, theirs)
