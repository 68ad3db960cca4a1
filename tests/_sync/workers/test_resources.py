# Generated from tests/_async/workers/test_resources.py by tools/unasync.py; do not edit.
"""What functions are given besides their arguments, what is done around jobs, and collections of tasks in one another."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast import JobContext, Outgoing, Snooze, Use
from holdfast._sync.handles.job import Job
from holdfast._sync.handles.tasks import Tasks
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON


def run(app: Tasks, **options: Any) -> None:
    app.run(until_empty=True, signals=False, heartbeat_s=None, **options)


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

    @contextmanager
    def manager(self) -> Iterator[str]:
        self.log.append("begun")
        yield "value"
        self.log.append("ended")


@pytest.mark.parametrize(("per", "log"), [("worker", ["begun", "ended"]), ("job", ["begun", "ended"] * 3)])
def test_a_factory_gives_a_value_for_the_worker_or_for_each_job(client: ControlPlaneClient, per: Any, log: list[str]) -> None:
    app, made = Tasks(client=client), Made()
    seen: list[Any] = []

    @app.task(name="take")
    def take(number: int, db: str = Use(made.generator, per=per)) -> None:
        seen.append((number, db))

    take.put_many([take.args(number) for number in range(3)])
    run(app)
    assert (sorted(seen), made.log) == ([(number, "value") for number in range(3)], log)


def test_async_functions_may_have_async_factories(client: ControlPlaneClient) -> None:
    app, made = Tasks(client=client), Made()
    seen: list[Any] = []

    @app.task(name="take")
    def take(job: JobContext, db: str = Use(made.manager), plain: str = Use(made.value, per="job")) -> None:
        seen.append((db, plain))

    take.put_many([take.args(), take.args()])
    run(app)
    assert seen == [("value", "value")] * 2
    assert made.log == ["begun", "made", "made", "ended"]


def test_what_the_worker_gives_cannot_be_put_and_is_replaced_in_tests(client: ControlPlaneClient) -> None:
    app, made = Tasks(client=client), Made()
    seen: list[Any] = []

    @app.task(name="take")
    def take(db: str = Use(made.value)) -> None:
        seen.append(db)

    with pytest.raises(TypeError, match="'db' is given by the worker"):
        take.put(db="mine")
    take.put()
    with app.override(made.value, "fake"):
        run(app)
    take.put()
    run(app)
    assert seen == ["fake", "value"]


def test_what_is_around_a_job_sees_its_end_and_may_decide_it(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)
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

    jobs = [send.put("ann"), send.put("bob")]
    run(app)
    assert jobs[0].result(timeout_s=0) == "sent"
    assert (jobs[1].status()).state == "delayed"
    assert log == ["up", "begin send", "send", "end", "begin send", "send", "missing", "end", "down"]


def test_a_hook_adds_metadata_to_what_is_put_or_refuses_it(client: ControlPlaneClient) -> None:
    app = Tasks(client=client)
    seen: list[Any] = []

    def hook(outgoing: Outgoing) -> None:
        if outgoing.arguments["to"] == "nobody":
            raise PermissionError("nobody gets mail")
        outgoing.metadata |= {"by": "me", "task": "another"}

    @app.task(name="send")
    def send(job: JobContext, to: str) -> None:
        seen.append(job.metadata)

    app.on_put(hook)
    send.put("ann")
    with pytest.raises(PermissionError):
        send.put_many([send.args("ann"), send.args("nobody")])
    run(app)
    assert seen == [{"by": "me", "task": "send"}]


def test_a_collection_includes_another_with_all_that_is_its(client: ControlPlaneClient) -> None:
    app, mails = Tasks("app", client=client), Tasks("mails", queue="mail", client=client)
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

    own.put()
    run(app, queues=["default"])
    send.put()
    run(app)
    assert log == ["own", "mail", "send"]
    assert app.queues == ["default", "mail"]
    other = Tasks("other", client=client)

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


def test_the_codec_of_tasks_is_that_of_arguments_and_results(client: ControlPlaneClient) -> None:
    app = Tasks(client=client, codec=Sealed())

    @app.task(name="double")
    def double(number: int) -> int:
        return 2 * number

    job = double.put(4)
    run(app)
    assert job.result(timeout_s=0) == 8
    assert Job("default", job.id, client=client).result(timeout_s=0) == {"sealed": 8}
