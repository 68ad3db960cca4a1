"""Those who wait for results of one queue share a reader: it looks at the jobs whose results came, and tells those who wait for them."""

from typing import Any

import pytest
from msgspec import Raw

from holdfast import Bury
from holdfast._async.flows import awaiting
from holdfast._async.handles.job import AsyncJob
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.tasks import AsyncTasks
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, encode_key
from holdfast.commands import Change, Changes, Together, Write
from holdfast.commands.topics import dict_topic, watch_topic
from holdfast.errors import Closed, JobFailed, JobGone, ResultMissing, ResultNotKept
from holdfast.workers import result_waits
from holdfast.workers.names import results_of
from tests.runners import AsyncRunner
from tests.workers.detours import Detour

pytestmark = pytest.mark.anyio

WAITERS = 30
MANY = 200


class Counted:
    """A store that counts the looks for results, and notes the jobs that are looked at."""

    def __init__(self, client: ControlPlaneClient) -> None:
        self.looks, self.jobs = 0, list[str]()
        inner = client.async_store

        async def execute(command: Any) -> Any:
            self.looks += isinstance(command, Together | Changes)
            if isinstance(command, Together):
                browse: Any = command.commands[0]
                self.jobs += browse.ids
            return await inner.execute(command)

        self.store: Any = Detour(inner, execute)

    async def result(self, message_id: str, timeout_s: float = 60.0) -> Any:
        return await awaiting.result(self.store, "default", message_id, JSON, timeout_s)


def app_of(client: ControlPlaneClient) -> Any:
    app = AsyncTasks(client=client)

    @app.task(name="double", max_attempts=1)
    async def double(number: int) -> int:
        if number < 0:
            raise Bury("negative")
        return 2 * number

    return app


async def looks_of_many(client: ControlPlaneClient, runner: AsyncRunner) -> int:
    """How many looks there are until so many waiters have so many results, which come one after the other."""
    app, counted = app_of(client), Counted(client)
    jobs = [await app.find("double").put(number) for number in range(WAITERS)]
    waiting = [runner.start(counted.result, job.id) for job in jobs]
    await runner.until(lambda: counted.looks >= WAITERS)
    for _ in jobs:
        before = counted.looks
        await app.run(max_jobs=1, signals=False, heartbeat_s=None)
        await runner.until(lambda before=before: counted.looks > before)  # type: ignore[misc] # called in this round
    assert [await one.result() for one in waiting] == [2 * number for number in range(WAITERS)]
    return counted.looks


async def test_a_result_wakes_one_reader_and_not_every_waiter(client: ControlPlaneClient) -> None:
    async with AsyncRunner() as runner:
        assert await looks_of_many(client, runner) <= 5 * WAITERS


@pytest.mark.parametrize("client", ["memory"], indirect=True)
async def test_control_where_each_reads_for_itself_each_result_wakes_all(
    client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_waits.ResultWaits, "reads", lambda *_: True)
    async with AsyncRunner() as runner:
        assert await looks_of_many(client, runner) > 5 * WAITERS


async def looked_at_for_one(client: ControlPlaneClient, runner: AsyncRunner) -> tuple[list[str], str]:
    """The jobs that are looked at because one result came, while many others are waited for; and whose result it was."""
    counted, topic = Counted(client), watch_topic(dict_topic(results_of("default")))
    jobs = [str(job) for job in await AsyncQueue[Any]("default", client=client).put_many(range(MANY))]
    waiting = {job: runner.start(counted.result, job) for job in jobs}
    await runner.until(lambda: set(counted.jobs) >= set(jobs))
    await write_results(client, jobs[:1])
    await waiting.pop(jobs[0]).result()
    # It was the reader; now another one reads, and has looked at all.
    (waits,) = result_waits._all.values()
    await runner.until(lambda: waits.index is not None and client.store.waiters.waiting(topic) > 0)
    counted.jobs.clear()
    await write_results(client, jobs[-2:-1])
    await waiting.pop(jobs[-2]).result()
    looked_at = list(counted.jobs)
    await write_results(client, list(waiting))
    for one in waiting.values():
        await one.result()
    return looked_at, jobs[-2]


async def write_results(client: ControlPlaneClient, jobs: list[str]) -> None:
    await client.async_store.execute(Write(results_of("default"), [Change(encode_key(job), value=Raw(b"1")) for job in jobs]))


async def test_of_many_jobs_only_that_is_looked_at_whose_result_came(client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaiting, "POLL_S", 3_600.0)
    async with AsyncRunner() as runner:
        looked_at, job = await looked_at_for_one(client, runner)
    assert looked_at == [job]


@pytest.mark.parametrize("client", ["memory"], indirect=True)
async def test_control_where_the_log_is_not_asked_all_jobs_are_looked_at(
    client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look_for_all(store: Any, queue: str, waits: Any, index: int) -> int:
        await awaiting._look_for_all(store, queue, waits)
        return index

    monkeypatch.setattr(awaiting, "POLL_S", 3_600.0)
    monkeypatch.setattr(awaiting, "_look_for_written", look_for_all)
    async with AsyncRunner() as runner:
        looked_at, _ = await looked_at_for_one(client, runner)
    assert len(looked_at) >= MANY - 1


async def test_when_the_reader_has_its_result_another_one_reads(client: ControlPlaneClient) -> None:
    app = app_of(client)
    first, second, third = [await app.find("double").put(number) for number in (1, -1, 3)]
    async with AsyncRunner() as runner:
        waiting = [runner.start(one.result) for one in (first, second, third, third)]
        await app.run(until_empty=True, signals=False, heartbeat_s=None)
        assert await waiting[0].result() == 2
        with pytest.raises(JobFailed, match="negative"):
            await waiting[1].result()
        assert [await waiting[2].result(), await waiting[3].result()] == [6, 6]
    assert result_waits._all == {}


async def test_one_who_does_not_wait_long_leaves_the_others_waiting(client: ControlPlaneClient) -> None:
    app = app_of(client)
    job = await app.find("double").put(4)
    counted = Counted(client)
    async with AsyncRunner() as runner:
        short = runner.start(counted.result, job.id, 0.05)
        await runner.until(lambda: counted.looks == 1)
        long = runner.start(counted.result, job.id)
        with pytest.raises(TimeoutError):
            await short.result()
        await app.run(until_empty=True, signals=False, heartbeat_s=None)
        assert await long.result() == 8


async def test_closing_the_client_ends_every_wait(client: ControlPlaneClient) -> None:
    app = app_of(client)
    jobs = [await app.find("double").put(number) for number in range(3)]
    counted = Counted(client)
    async with AsyncRunner() as runner:
        waiting = [runner.start(counted.result, job.id) for job in jobs]
        await runner.until(lambda: counted.looks >= len(jobs))
        client.close()
        for one in waiting:
            with pytest.raises(Closed):
                await one.result()


async def test_one_who_was_forgotten_before_it_left_keeps_nobody_waiting(
    client: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaiting, "TURN_S", 0.01)
    app = app_of(client)
    job = await app.find("double").put(5)
    with result_waits.waits_of(client.async_store, "default") as waits:
        lost = waits.join("another")
        assert waits.reads(lost)
        async with AsyncRunner() as runner:
            waiting = runner.start(job.result)
            await runner.until(lambda: job.id in waits.ids())
            await app.run(until_empty=True, signals=False, heartbeat_s=None)
            del lost  # An interrupt came before it could leave.
            assert await waiting.result() == 10


async def test_a_job_that_is_done_and_kept_has_ended(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)

    @app.task(name="note")
    async def note() -> None: ...

    await AsyncQueue[Any]("default", client=client).configure(keep_done_s=60.0)
    job = await note.put()
    await app.run(until_empty=True, signals=False, heartbeat_s=None, name="me")
    status = await job.status()
    assert (status.state, status.task, status.attempts, (status.worker or "").split("/")[0]) == ("done", "note", 1, "me")
    assert status.finished_at is not None
    assert [one.state async for one in job.watch()] == ["done"]
    assert await AsyncJob("default", job.id, client=client).result(timeout_s=0) is None
    with pytest.raises(JobGone):
        await job.send("late")
    assert await job.cancel() == "absent"


@pytest.mark.parametrize(("keep_done_s", "error"), [(None, ResultMissing), (60.0, ResultNotKept)])
async def test_a_function_that_returns_nothing_has_the_result_none(
    client: ControlPlaneClient, keep_done_s: float | None, error: type[ResultMissing]
) -> None:
    app = AsyncTasks(client=client)

    async def note() -> None: ...

    kept, unkept = app.task(name="kept")(note), app.task(name="unkept", results=False)(note)
    await AsyncQueue[Any]("default", client=client).configure(keep_done_s=keep_done_s)
    jobs: list[AsyncJob[Any]] = [await kept.put(), await unkept.put()]
    await app.run(until_empty=True, signals=False, heartbeat_s=None)
    assert await jobs[0].result(timeout_s=0) is None
    with pytest.raises(ResultMissing, match="results=True keeps them") as caught:
        await jobs[1].result(timeout_s=0)
    assert type(caught.value) is error
    with pytest.raises(ResultMissing, match="never existed"):
        await AsyncJob("default", "nobody", client=client).result(timeout_s=0)
