"""Other queues on the same PostgreSQL, by their documented calls, each with what it does best: batches where it has them.

pgmq stands here twice: as programs in Python call it, by its client, on a connection that spares each call its begin and commit; and by its
SQL functions alone, prepared and without any client, which no program gets to see but which says what the server does for each.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import uuid4

import psycopg
from msgspec import Raw, json

from bench.crews import Crew
from bench.job_libraries import OnLoop, Peer, Peers, Span, compare_peer
from bench.measure import Figure, Run, in_fresh_process
from bench.networked import OurQueue
from bench.ours import QUEUE, VALUE
from holdfast.codec import JSON

TEXT = VALUE.decode()
BODY = json.decode(VALUE)


class OurValues(OurQueue):
    """Ours with values that go in and come out as Python objects, as theirs do."""

    def body(self) -> Raw:
        return JSON.encode(BODY)

    def cycle(self, size: int) -> int:
        messages = self.claim(size)
        for message in messages:
            JSON.decode(message.value)
        self.settle(messages)
        return len(messages)


class Pgmq:
    """Its Python client, by whose calls values go in and come out as Python objects."""

    def __init__(self, url: str) -> None:
        # Its calls make a transaction of their own, in three round trips, unless they are given a connection.
        self._connection = psycopg.connect(url, autocommit=True)
        pool = import_module("psycopg_pool").ConnectionPool(url, min_size=0, max_size=1, open=True)
        self._queue: Any = import_module("pgmq").PGMQueue(pool=pool, init_extension=False)
        self._pool: Any = pool

    def put(self, size: int) -> int:
        if size == 1:
            self._queue.send(QUEUE, BODY, conn=self._connection)
        else:
            self._queue.send_batch(QUEUE, [BODY] * size, conn=self._connection)
        return size

    def cycle(self, size: int) -> int:
        if size == 1:
            message = self._queue.read(QUEUE, vt=60, conn=self._connection)
            if message is None:
                return 0
            self._queue.delete(QUEUE, message.msg_id, conn=self._connection)
            return 1
        messages = self._queue.read_batch(QUEUE, vt=60, batch_size=size, conn=self._connection) or []
        if messages:
            self._queue.delete_batch(QUEUE, [message.msg_id for message in messages], conn=self._connection)
        return len(messages)

    def close(self) -> None:
        self._connection.close()
        self._pool.close()


class PgmqFunctions:
    """Its SQL functions, each a prepared statement on a bare connection."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def put(self, size: int) -> int:
        if size == 1:
            self._ask("select pgmq.send(%s, %s::jsonb)", QUEUE, TEXT)
        else:
            self._ask("select pgmq.send_batch(%s, %s::jsonb[])", QUEUE, [TEXT] * size)
        return size

    def cycle(self, size: int) -> int:
        ids = [row[0] for row in self._ask("select msg_id, message from pgmq.read(%s, 60, %s)", QUEUE, size)]
        if ids:
            self._ask("select pgmq.delete(%s, %s::bigint[])", QUEUE, ids)
        return len(ids)

    def close(self) -> None:
        self._connection.close()

    def _ask(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement.encode(), parameters, prepare=True).fetchall()


def create_pgmq(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        is_there = connection.execute("select to_regnamespace('pgmq') is not null").fetchone()
        if is_there == (False,):
            import_module("pgmq.install").install_pgmq_from_sql(dsn=url)
        connection.execute("select pgmq.create(%s)", (QUEUE,))


class Pgqueuer(OnLoop):
    """The queries that its queue manager makes, on the driver that it recommends."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._connection: Any = self.wait(import_module("asyncpg").connect(url))
        self._queries: Any = import_module("pgqueuer.queries").Queries.from_asyncpg_connection(self._connection)
        limits = import_module("pgqueuer.core.qm").EntrypointExecutionParameter(concurrency_limit=0)
        self._asked = {"entrypoints": {QUEUE: limits}, "queue_manager_id": uuid4(), "global_concurrency_limit": None}

    def put(self, size: int) -> int:
        if size == 1:
            self.wait(self._queries.enqueue(QUEUE, VALUE))
        else:
            self.wait(self._queries.enqueue([QUEUE] * size, [VALUE] * size, [0] * size))
        return size

    def cycle(self, size: int) -> int:
        return self.wait(self._cycle(size))

    async def _cycle(self, size: int) -> int:
        jobs = await self._queries.dequeue(batch_size=size, heartbeat_timeout=timedelta(seconds=60), **self._asked)
        if jobs:
            await self._queries.log_jobs([(job, "successful", None) for job in jobs])
        return len(jobs)

    def close(self) -> None:
        self.wait(self._connection.close())


def create_pgqueuer(url: str) -> None:
    async def create() -> None:
        connection = await import_module("asyncpg").connect(url)
        await import_module("pgqueuer.queries").Queries.from_asyncpg_connection(connection).install()
        await connection.close()

    asyncio.run(create())


class Procrastinate(OnLoop):
    """The calls that its worker makes; jobs are fetched and finished one by one."""

    def __init__(self, url: str) -> None:
        super().__init__()
        module: Any = import_module("procrastinate")
        self._app = module.App(connector=module.PsycopgConnector(conninfo=url, min_size=1, max_size=1))
        self._task = self._app.task(self._noop, name="noop", queue=QUEUE)
        self._done = import_module("procrastinate.jobs").Status.SUCCEEDED
        self.wait(self._app.open_async())

    async def _noop(self, value: str) -> None:
        """Do no work."""

    def put(self, size: int) -> int:
        if size == 1:
            self.wait(self._task.defer_async(value=TEXT))
        else:
            self.wait(self._task.batch_defer_async(*({"value": TEXT} for _ in range(size))))
        return size

    def cycle(self, size: int) -> int:
        return self.wait(self._cycle(size))

    async def _cycle(self, size: int) -> int:
        manager = self._app.job_manager
        if not hasattr(self, "_worker"):
            self._worker = await manager.register_worker()
        for done in range(size):
            job = await manager.fetch_job([QUEUE], self._worker)
            if job is None:
                return done
            await manager.finish_job(job, self._done, delete_job=True)
        return size

    def close(self) -> None:
        self.wait(self._app.close_async())


def create_procrastinate(url: str) -> None:
    async def create() -> None:
        module: Any = import_module("procrastinate")
        app = module.App(connector=module.PsycopgConnector(conninfo=url))
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(create())


class Dbos:
    """Workflows of one step, put by its client and run by its own worker."""

    def __init__(self, url: str) -> None:
        self._client: Any = import_module("dbos").DBOSClient(system_database_url=url)
        self._engine: Any = import_module("sqlalchemy").create_engine(url.replace("postgresql:", "postgresql+psycopg:"))

    def put(self, size: int) -> int:
        job = {"workflow_name": "noop", "queue_name": QUEUE}
        if size == 1:
            self._client.enqueue(job, TEXT)
        else:
            with self._engine.begin() as connection:
                for _ in range(size):
                    self._client.enqueue_in_transaction(connection, job, TEXT)
        return size

    def cycle(self, _: int) -> int:
        """Nothing: it hands no job out."""
        return 0

    def close(self) -> None:
        self._client.destroy()
        self._engine.dispose()


def create_dbos(url: str) -> None:
    in_fresh_process(run_dbos, url, 0, 1)


def run_dbos(url: str, jobs: int, concurrency: int) -> float:
    theirs: Any = import_module("dbos").DBOS
    theirs(config={"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "CRITICAL"})
    span = Span(jobs)

    def noop(value: str) -> None:
        span.count(value)

    theirs.workflow(name="noop")(noop)
    theirs.launch()
    theirs.register_queue(QUEUE, worker_concurrency=concurrency, polling_interval_sec=0.001)
    rate = span.rate() if jobs else 0.0
    theirs.destroy()
    return rate


@dataclass
class Noop:
    """A job of awa."""

    value: str


class Awa:
    """Jobs in its queue storage, by COPY where there are several."""

    def __init__(self, url: str) -> None:
        self._client: Any = import_module("awa").Client(url, max_connections=1)

    def put(self, size: int) -> int:
        if size == 1:
            self._client.insert(Noop(TEXT), queue=QUEUE)
        else:
            self._client.enqueue_many_copy([Noop(TEXT)] * size, queue=QUEUE)
        return size

    def cycle(self, _: int) -> int:
        """Nothing: it hands no job out."""
        return 0

    def close(self) -> None:
        self._client.close()


def create_awa(url: str) -> None:
    client: Any = import_module("awa").Client(url)
    client.migrate()
    client.install_queue_storage()
    client.close()


def run_awa(url: str, jobs: int, concurrency: int) -> float:
    async def run() -> float:
        client: Any = import_module("awa").AsyncClient(url)
        span = Span(jobs)

        async def noop(job: Any) -> None:
            span.count(job)

        client.task(Noop, queue=QUEUE)(noop)
        await client.start([(QUEUE, concurrency)], poll_interval_ms=10)
        rate = await asyncio.to_thread(span.rate)
        await client.shutdown()
        return rate

    return asyncio.run(run())


PEERS: Peers = {
    "pgmq": Peer("pgmq", Pgmq, create=create_pgmq),
    "pgmq, functions alone": Peer("pgmq", PgmqFunctions, create=create_pgmq),
    "pgqueuer": Peer("pgqueuer", Pgqueuer, create=create_pgqueuer),
    "procrastinate": Peer("procrastinate", Procrastinate, create=create_procrastinate),
    "awa": Peer("awa", Awa, run_awa, create_awa),
    "DBOS": Peer("dbos", Dbos, run_dbos, create_dbos),
}


def beside(run: Run, url: str) -> Iterator[Figure]:
    """Ours and each peer, round by round."""
    most = max(run.sizes.crews)
    with Crew(OurValues, url, most) as ours:
        for name, peer in PEERS.items():
            if not peer.is_installed or not run.wants(name):
                continue
            if peer.create:
                peer.create(url)
            with Crew(peer.make, url, most) as theirs:
                yield from compare_peer(run, name, peer, ours, theirs)
