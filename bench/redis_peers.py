"""Job libraries on the same Redis, by their documented calls: how fast they enqueue no-op jobs, and one worker works them off.

Those not installed are left out and named. Each runs in a process of its own, with the least of settings that it takes.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any

from bench.measure import Child, Figure, Rates, Run, compare, timed
from bench.networked import OurQueue

Peer = Callable[[str, int], Rates]


def noop() -> None:
    """What a job does."""


async def noop_task(*_: Any, **__: Any) -> None:
    """What a job does, for libraries of tasks."""


def rates(count: int, put_s: float, done_s: float) -> Rates:
    return {"put": count / put_s, "claim+ack": count / done_s}


def ours(url: str, count: int) -> Rates:
    queue = OurQueue(url)
    with timed() as putting:
        for _ in range(count):
            queue.put(1)
    with timed() as working:
        for _ in range(count):
            queue.cycle(1)
    queue.close()
    return rates(count, putting.elapsed_s, working.elapsed_s)


def rq(url: str, count: int) -> Rates:
    module, client = import_module("rq"), import_module("redis").Redis.from_url(url)
    queue = module.Queue("rq-bench", connection=client)
    with timed() as putting:
        for _ in range(count):
            queue.enqueue(noop)
    with timed() as working:
        module.SimpleWorker([queue], connection=client).work(burst=True, logging_level="ERROR")
    return rates(count, putting.elapsed_s, working.elapsed_s)


def dramatiq(url: str, count: int) -> Rates:
    module = import_module("dramatiq")
    broker = import_module("dramatiq.brokers.redis").RedisBroker(url=url)
    actor = module.actor(noop, broker=broker, queue_name="dramatiq-bench")
    with timed() as putting:
        for _ in range(count):
            actor.send()
    worker = module.Worker(broker, worker_threads=1)
    with timed() as working:
        worker.start()
        broker.join("dramatiq-bench")
        worker.join()
    worker.stop()
    return rates(count, putting.elapsed_s, working.elapsed_s)


def celery(url: str, count: int) -> Rates:
    app = import_module("celery").Celery("bench", broker=url, backend=None)
    app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False, task_acks_late=True)
    done: list[int] = []

    def work() -> None:
        done.append(1)

    task = app.task(work, name="noop")
    with timed() as putting:
        for _ in range(count):
            task.delay()
    start_worker = import_module("celery.contrib.testing.worker").start_worker
    with timed() as working, start_worker(app, pool="solo", perform_ping_check=False):
        while len(done) < count:
            import_module("time").sleep(0.001)
    return rates(count, putting.elapsed_s, working.elapsed_s)


def saq(url: str, count: int) -> Rates:
    return asyncio.run(_saq(url, count))


async def _saq(url: str, count: int) -> Rates:
    module = import_module("saq")
    queue = module.Queue.from_url(url, name="saq-bench")
    await queue.connect()
    with timed() as putting:
        for _ in range(count):
            await queue.enqueue("noop_task")
    worker = module.Worker(queue, functions=[noop_task], concurrency=1, burst=True, dequeue_timeout=1)
    with timed() as working:
        await worker.start()
    await queue.disconnect()
    return rates(count, putting.elapsed_s, working.elapsed_s)


def arq(url: str, count: int) -> Rates:
    return asyncio.run(_arq(url, count))


async def _arq(url: str, count: int) -> Rates:
    settings = import_module("arq.connections").RedisSettings.from_dsn(url)
    pool = await import_module("arq").create_pool(settings)
    with timed() as putting:
        for _ in range(count):
            await pool.enqueue_job("noop_task")
    worker = import_module("arq.worker").Worker(
        [noop_task], redis_settings=settings, burst=True, poll_delay=0.01, max_jobs=1, handle_signals=False, keep_result=0
    )
    with timed() as working:
        await worker.main()
    await worker.close()
    return rates(count, putting.elapsed_s, working.elapsed_s)


def taskiq(url: str, count: int) -> Rates:
    return asyncio.run(_taskiq(url, count))


async def _taskiq(url: str, count: int) -> Rates:
    broker = import_module("taskiq_redis").ListQueueBroker(url, queue_name="taskiq-bench")
    done, everything = [], asyncio.Event()

    async def work() -> None:
        done.append(1)
        if len(done) == count:
            everything.set()

    task = broker.register_task(work, task_name="noop")
    await broker.startup()
    with timed() as putting:
        for _ in range(count):
            await task.kiq()
    with timed() as working:
        receiver = asyncio.create_task(import_module("taskiq.api").run_receiver_task(broker, max_async_tasks=1))
        await everything.wait()
        receiver.cancel()
        await asyncio.gather(receiver, return_exceptions=True)
    await broker.shutdown()
    return rates(count, putting.elapsed_s, working.elapsed_s)


def streaq(url: str, count: int) -> Rates:
    return asyncio.run(_streaq(url, count))


async def _streaq(url: str, count: int) -> Rates:
    worker = import_module("streaq").Worker(redis_url=url, concurrency=1, queue_name="streaq-bench", handle_signals=False)
    done, everything = [], asyncio.Event()

    async def work() -> None:
        done.append(1)
        if len(done) == count:
            everything.set()

    task = worker.task()(work)
    async with worker:
        with timed() as putting:
            for _ in range(count):
                await task.enqueue()
    with timed() as working:
        running = asyncio.create_task(worker.run_async())
        await everything.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return rates(count, putting.elapsed_s, working.elapsed_s)


PEERS: Mapping[str, tuple[str, Peer]] = {
    "RQ": ("rq", rq),
    "arq": ("arq", arq),
    "SAQ": ("saq", saq),
    "streaq": ("streaq", streaq),
    "Dramatiq": ("dramatiq", dramatiq),
    "taskiq": ("taskiq_redis", taskiq),
    "Celery": ("celery", celery),
}
"""The package to import, and how it is used, by the name shown."""


NEWER = ("streaq",)
"""Those that need Redis 7 or newer, or Valkey: they keep their scripts there as functions."""


def is_newer(url: str) -> bool:
    with import_module("redis").Redis.from_url(url) as client:
        return int(client.info("server")["redis_version"].split(".")[0]) >= 7


def missing() -> list[str]:
    return [name for name, (package, _) in PEERS.items() if not find_spec(package)]


def beside(run: Run, url: str) -> Iterator[Figure]:
    """Ours and each peer, round by round."""
    for name, (package, peer) in PEERS.items():
        if not find_spec(package):
            continue
        if name in NEWER and not is_newer(url):
            run.tell(f"{name} is left out: it needs Redis 7, and this server is older")
            continue
        found: dict[str, list[Rates]] = {"ours": [], name: []}
        for _ in run.rounds(name, run.sizes.peer_rounds):
            found["ours"].append(in_process(ours, url, run.sizes.peer_messages))
            found[name].append(in_process(peer, url, run.sizes.peer_messages))
        for what in ("put", "claim+ack"):
            mine, theirs = ([round_[what] for round_ in rounds] for rounds in found.values())
            yield compare(f"{what} beside {name}", mine, theirs, beside=name)


def in_process(peer: Peer, url: str, count: int) -> Rates:
    child = Child(_run, peer, url, count)
    try:
        answer: Rates = child.answer()
        return answer
    finally:
        child.end()


def _run(answers: Connection, peer: Peer, url: str, count: int) -> None:
    logging.disable(logging.CRITICAL)
    answers.send(peer(url, count))
