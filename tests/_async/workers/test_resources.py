"""What functions are given besides their arguments, what is done around jobs, and collections of tasks in one another."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from holdfast import JobContext, Outgoing, Snooze, Use
from holdfast._async.handles.job import AsyncJob
from holdfast._async.handles.tasks import AsyncTasks
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON

pytestmark = pytest.mark.anyio


async def run(app: AsyncTasks, **options: Any) -> None:
    await app.run(until_empty=True, signals=False, heartbeat_s=None, **options)


class Made:
    """Factories that write down what they made, and what was cleaned up."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def value(self) -> str:
        self.log.append("made")
        return "value"

    def generator(self) -> Iterator[str]:
        self.log.append("begun")
        yield "value"
        self.log.append("ended")

    @asynccontextmanager
    async def manager(self) -> AsyncIterator[str]:
        self.log.append("begun")
        yield "value"
        self.log.append("ended")


@pytest.mark.parametrize(("per", "log"), [("worker", ["begun", "ended"]), ("job", ["begun", "ended"] * 3)])
async def test_a_factory_gives_a_value_for_the_worker_or_for_each_job(client: ControlPlaneClient, per: Any, log: list[str]) -> None:
    app, made = AsyncTasks(client=client), Made()
    seen: list[Any] = []

    @app.task(name="take")
    def take(number: int, db: str = Use(made.generator, per=per)) -> None:
        seen.append((number, db))

    await take.put_many([take.args(number) for number in range(3)])
    await run(app)
    assert (sorted(seen), made.log) == ([(number, "value") for number in range(3)], log)


async def test_async_functions_may_have_async_factories(client: ControlPlaneClient) -> None:
    app, made = AsyncTasks(client=client), Made()
    seen: list[Any] = []

    @app.task(name="take")
    async def take(job: JobContext, db: str = Use(made.manager), plain: str = Use(made.value, per="job")) -> None:
        seen.append((db, plain))

    await take.put_many([take.args(), take.args()])
    await run(app)
    assert seen == [("value", "value")] * 2
    assert made.log == ["begun", "made", "made", "ended"]


async def test_what_the_worker_gives_cannot_be_put_and_is_replaced_in_tests(client: ControlPlaneClient) -> None:
    app, made = AsyncTasks(client=client), Made()
    seen: list[Any] = []

    @app.task(name="take")
    def take(db: str = Use(made.value)) -> None:
        seen.append(db)

    with pytest.raises(TypeError, match="'db' is given by the worker"):
        await take.put(db="mine")
    await take.put()
    with app.override(made.value, "fake"):
        await run(app)
    await take.put()
    await run(app)
    assert seen == ["fake", "value"]


async def test_what_is_around_a_job_sees_its_end_and_may_decide_it(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)
    log: list[str] = []

    @contextmanager
    def noted(job: JobContext) -> Iterator[None]:
        log.append(f"begin {job.metadata and job.metadata['task']}")
        try:
            yield
        except KeyError:
            log.append("missing")
            raise Snooze(3600.0, "later") from None
        finally:
            log.append("end")

    @contextmanager
    def once() -> Iterator[None]:
        log.append("up")
        yield
        log.append("down")

    app.around(noted)
    app.around(once, per="worker")

    @app.task(name="send")
    def send(to: str) -> str:
        log.append("send")
        return {"ann": "sent"}[to]

    jobs = [await send.put("ann"), await send.put("bob")]
    await run(app)
    assert await jobs[0].result(timeout_s=0) == "sent"
    assert (await jobs[1].status()).state == "delayed"
    assert log == ["up", "begin send", "send", "end", "begin send", "send", "missing", "end", "down"]


async def test_a_hook_adds_metadata_to_what_is_put_or_refuses_it(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client)
    seen: list[Any] = []

    def hook(outgoing: Outgoing) -> None:
        if outgoing.arguments["to"] == "nobody":
            raise PermissionError("nobody gets mail")
        outgoing.metadata |= {"by": "me", "task": "another"}

    @app.task(name="send")
    def send(job: JobContext, to: str) -> None:
        seen.append(job.metadata)

    app.on_put(hook)
    await send.put("ann")
    with pytest.raises(PermissionError):
        await send.put_many([send.args("ann"), send.args("nobody")])
    await run(app)
    assert seen == [{"by": "me", "task": "send"}]


async def test_a_collection_includes_another_with_all_that_is_its(client: ControlPlaneClient) -> None:
    app, mails = AsyncTasks("app", client=client), AsyncTasks("mails", queue="mail", client=client)
    log: list[str] = []

    @contextmanager
    def noted(job: JobContext) -> Iterator[None]:
        log.append("mail")
        yield

    mails.around(noted)
    app.include(mails)

    @mails.task(name="send")
    def send() -> None:
        log.append("send")

    @app.task(name="own")
    def own() -> None:
        log.append("own")

    await own.put()
    await run(app, queues=["default"])
    await send.put()
    await run(app)
    assert log == ["own", "mail", "send"]
    assert app.queues == ["default", "mail"]
    other = AsyncTasks("other", client=client)

    @other.task(name="send")
    def another() -> None: ...

    with pytest.raises(ValueError, match=r"task 'send' is .* and .*: give one of them another name"):
        app.include(other)


class Sealed:
    """A codec that anybody can tell from JSON."""

    name = "sealed"

    def encode(self, value: object) -> Any:
        return JSON.encode({"sealed": value})

    def decode(self, raw: Any) -> Any:
        return JSON.decode(raw)["sealed"]


async def test_the_codec_of_tasks_is_that_of_arguments_and_results(client: ControlPlaneClient) -> None:
    app = AsyncTasks(client=client, codec=Sealed())

    @app.task(name="double")
    def double(number: int) -> int:
        return 2 * number

    job = await double.put(4)
    await run(app)
    assert await job.result(timeout_s=0) == 8
    assert await AsyncJob("default", job.id, client=client).result(timeout_s=0) == {"sealed": 8}
