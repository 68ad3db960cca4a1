"""`job.done(connection=…)`: a job is done exactly if the rows of its handler are committed, for every driver."""

import sqlite3
from collections.abc import Coroutine
from contextlib import closing
from typing import Any

import pytest

from holdfast import AsyncJobContext, HoldfastError, JobContext, Queue, Tasks
from tests.connections.conftest import Place
from tests.connections.drivers import Shop, order
from tests.connections.test_transactions import POSTGRES, SQLITE, Open

pytestmark = pytest.mark.anyio

OF_THREADS = ("psycopg", "sqlalchemy session", "sqlalchemy connection", "django")


def finished(work: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError


async def check(place: Place, open_shop: Open, level: str, *, in_thread: bool = False) -> None:
    """Run one job that commits, one that rolls back and raises once, and one that raises behind its commit."""
    app, seen = Tasks(client=place.client, max_attempts=3), list[str]()

    async def body(job: JobContext, name: str) -> str:
        seen.append(name)
        shop: Shop = await open_shop(place.where, level)
        try:
            await order(shop, name)
            job.put("next", name)
            done: Any = job.done
            ended = done(f"bought {name}", connection=shop.given)
            if ended is not None:
                await ended
            if name == "rolled back" and seen.count(name) == 1:
                await shop.rollback()
                raise ConnectionError("no money")
            await shop.commit()
            if name == "late":
                raise ValueError("too late to fail")
            return "ignored"
        finally:
            await shop.close()

    async def buy_in_task(job: AsyncJobContext, name: str) -> str:
        return await body(job, name)

    def buy_in_thread(job: JobContext, name: str) -> str:
        return str(finished(body(job, name)))

    buy: Any = app.task(name="buy")(buy_in_thread if in_thread else buy_in_task)
    jobs = [await buy.aio.put(name) for name in ("plain", "rolled back", "late")]
    worker = app.aio.worker(schedules=False, heartbeat_s=None)
    await worker.run(until_empty=True, signals=False)
    assert place.rows() == ["late", "plain"]
    await jobs[1].cancel()
    again = await buy.aio.put("rolled back")
    await app.aio.worker(schedules=False, heartbeat_s=None).run(until_empty=True, signals=False)
    assert place.rows() == ["late", "plain", "rolled back"]
    assert [await job.result(timeout_s=0) for job in (jobs[0], jobs[2], again)] == ["bought plain", "bought late", "bought rolled back"]
    assert sorted(Queue[Any].from_name("next", client=place.client).get_many(10)) == ["late", "plain", "rolled back"]
    assert sorted(seen) == ["late", "plain", "rolled back", "rolled back"]


@pytest.mark.parametrize("kind", SQLITE)
async def test_on_sqlite(kind: str, on_sqlite: Place) -> None:
    await check(on_sqlite, SQLITE[kind][0], "deferred" if kind != "sqlite3" else "immediate")


@pytest.mark.parametrize("kind", POSTGRES)
async def test_on_postgresql(kind: str, on_postgres: Place) -> None:
    await check(on_postgres, POSTGRES[kind], "read committed", in_thread=kind in OF_THREADS)


def test_in_a_thread(on_sqlite: Place) -> None:
    app = Tasks(client=on_sqlite.client)

    @app.task(name="buy")
    def buy(job: JobContext, name: str) -> str:
        with closing(sqlite3.connect(on_sqlite.where)) as connection, connection:
            connection.execute("insert into orders values (?, null)", (name,))
            job.done(name.upper(), connection=connection)
        return "ignored"

    job = buy.put("ann")
    worker = app.worker(schedules=False)
    worker.run(until_empty=True, signals=False)
    assert (job.result(timeout_s=0), on_sqlite.rows(), worker.health.done) == ("ANN", ["ann"], 1)


def test_a_worker_that_lost_the_job_commits_nothing(on_sqlite: Place) -> None:
    app, lost = Tasks(client=on_sqlite.client), list[bool]()

    @app.task(name="buy")
    def buy(job: JobContext, name: str) -> None:
        on_sqlite.client.store.execute(_settle(job))
        with closing(sqlite3.connect(on_sqlite.where)) as connection, connection:
            connection.execute("insert into orders values (?, null)", (name,))
            try:
                job.done(connection=connection)
            except HoldfastError:
                lost.append(True)
                raise

    buy.put("ann")
    app.worker(schedules=False).run(until_empty=True, signals=False)
    assert (lost, on_sqlite.rows()) == ([True], [])


def _settle(job: JobContext) -> Any:
    from holdfast.commands import Settle

    return Settle([job.message.receipt])
