"""Tasks: typed functions by name, several on one queue, and jobs that this worker does not know."""

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import JobContext, JobFailed, QueueMessage
from holdfast._async.flows.working.registering import AsyncRegistration
from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.tasks import AsyncTasks
from holdfast._async.handles.worker import STOPPED, AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock
from holdfast.workers.handlers import judgement
from holdfast.workers.handlers.outcomes import Outcome

pytestmark = pytest.mark.anyio

DAY_S = 86_400.0


@dataclass
class Mail:
    to: str


def app_of(client: ControlPlaneClient, **options: Any) -> AsyncTasks:
    return AsyncTasks("shop", queue="jobs", client=client, **options)


async def run(app: AsyncTasks, **options: Any) -> None:
    await app.run(until_empty=True, signals=False, heartbeat_s=None, **options)


async def only(client: ControlPlaneClient, state: Any = "ready") -> QueueMessage:
    (message,) = await AsyncQueue.from_name("jobs", client=client).browse(state=state)
    return message


async def test_tasks_of_one_queue_are_run_by_their_own_functions(client: ControlPlaneClient) -> None:
    app = app_of(client)

    @app.task
    def send(to: str, *, text: str = "hi") -> str:
        return f"{to} {text}"

    @app.task(name="double")
    async def double(number: int) -> int:
        return 2 * number

    @app.task
    def note(job: JobContext, mail: Mail | None = None) -> Mail:
        assert job.value == ({} if mail is None else {"mail": mail})
        return mail or Mail("nobody")

    jobs: list[Any] = [await send.put("ann"), await double.put(4), await note.put(), await note.put(mail=Mail("bob"))]
    jobs.append(await send.put("eve", text="x"))
    await run(app, concurrency=3)
    assert [await job.result(timeout_s=0) for job in jobs] == ["ann hi", 8, Mail("nobody"), Mail("bob"), "eve x"]
    assert send("ann", text="y") == "ann y"
    assert (send.name, send.queue, double.name) == (f"{__name__}.{send.function.__qualname__}", "jobs", "double")


async def test_a_message_has_its_arguments_by_name_and_says_its_task(client: ControlPlaneClient) -> None:
    app = app_of(client, max_attempts=7)

    @app.task(name="send", version="2", priority=3, key=lambda to, text: to)
    def send(to: str, text: str = "") -> None: ...

    await send.using(metadata={"by": "me"}, labels=["new"]).put("ann", text="hi")
    message = await only(client)
    assert (message.value, message.metadata) == ({"to": "ann", "text": "hi"}, {"by": "me", "task": "send", "v": "2"})
    assert (message.max_attempts, message.priority, message.key, message.labels) == (7, 3, "ann", ("new",))


async def test_jobs_are_put_all_or_none(client: ControlPlaneClient) -> None:
    app = app_of(client)

    @app.task
    def send(to: str) -> str:
        return to

    @app.task
    def other(to: str) -> str:
        return to

    with pytest.raises(TypeError, match=r"the arguments of .*send cannot be kept: .*Expected `str`"):
        await send.put_many([send.args("ann"), send.args(7)])  # type: ignore[arg-type] # what is refused
    with pytest.raises(ValueError, match=r"a call of '.*other' cannot be put for '.*send'"):
        await send.put_many([send.args("ann"), other.args("bob")])
    with pytest.raises(TypeError, match=r"send\(\): got an unexpected keyword argument 'too'"):
        await send.put("ann", too="ann")  # type: ignore[call-arg] # what is refused
    assert await AsyncQueue.from_name("jobs", client=client).length() == 0
    assert await send.put_many([]) == []
    jobs = await send.put_many([send.args("ann"), send.args(to="bob")])
    await run(app)
    assert [await job.result(timeout_s=0) for job in jobs] == ["ann", "bob"]


async def unknown_job(client: ControlPlaneClient, clock: FakeClock) -> tuple[AsyncTasks, QueueMessage]:
    """A job that a worker of other tasks has met five times, and the tasks that know it."""
    known, others = app_of(client), app_of(client)

    @known.task(name="send")
    def send(to: str) -> str:
        return to

    @others.task(name="other")
    def other(to: str) -> str:
        return to

    await send.put("ann")
    for _ in range(5):
        await run(others)
        clock.advance(60.0)
    return known, await only(client)


async def test_a_job_of_an_unknown_task_is_given_back_unburnt(client: ControlPlaneClient, clock: FakeClock) -> None:
    known, message = await unknown_job(client, clock)
    assert (message.attempts, message.failures) == (5, 0)
    assert message.last_error == "UnknownTask: task 'send' is not known here; known are: other"
    await run(known)
    assert await known.tasks[0].job(message.id).result(timeout_s=0) == "ann"


async def test_control_a_give_back_that_counts_as_a_failure_would_lose_the_job(
    client: ControlPlaneClient, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "unknown", lambda error, *_: Outcome("failed", error=str(error), delay_s=0.5))
    with pytest.raises(ValueError, match="not enough values"):
        await unknown_job(client, clock)
    assert (await only(client, "dead")).failures == 3


async def test_an_unknown_job_waits_longer_each_time_and_is_buried_after_a_day(client: ControlPlaneClient, clock: FakeClock) -> None:
    app, others = app_of(client), app_of(client)

    @app.task(name="send")
    def send(to: str) -> None: ...

    @others.task(name="other")
    def other(to: str) -> None: ...

    await send.put("ann")
    waits: list[float] = []
    for _ in range(10):
        await run(others)
        found: Any = await only(client)
        waits.append(round((found.due_at - found.created_at).total_seconds() - sum(waits), 1))
        clock.advance(waits[-1])
    assert waits == [0.5, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    clock.advance(DAY_S)
    await run(others)
    assert (await only(client, "dead")).last_error == "UnknownTask: task 'send' is not known here; known are: other"
    await AsyncQueue.from_name("jobs", client=client).redrive()
    await run(others)
    assert (await only(client)).failures == 0  # It has another day.


@pytest.mark.parametrize(("unknown_for_s", "state"), [(60.0, "dead"), (None, "ready")])
async def test_a_worker_may_say_how_long_an_unknown_job_is_given_back(
    client: ControlPlaneClient, clock: FakeClock, unknown_for_s: float | None, state: Any
) -> None:
    app, others = app_of(client), app_of(client)

    @app.task(name="send")
    def send(to: str) -> None: ...

    @others.task(name="other")
    def other(to: str) -> None: ...

    await send.put("ann")
    clock.advance(30 * DAY_S if unknown_for_s is None else unknown_for_s)
    await run(others, unknown_for_s=unknown_for_s)
    assert ((await only(client, state)).last_error or "").startswith("UnknownTask: task 'send'")


async def test_a_version_and_a_parameter_that_are_not_known_are_given_back(client: ControlPlaneClient, clock: FakeClock) -> None:
    old, new = app_of(client), app_of(client)

    @old.task(name="send", version="1")
    def send(to: str) -> str:
        return to

    @new.task(name="send", version="2", versions=["1"])
    def send_new(to: str, text: str = "-") -> str:
        return to + text

    job, before = await send_new.put("ann"), await send.put("bob")
    await run(old)
    assert (await only(client)).last_error == "UnknownTask: version '2' of task 'send' is not accepted here"
    clock.advance(60.0)
    await run(new)
    assert (await job.result(timeout_s=0), await before.result(timeout_s=0)) == ("ann-", "bob")

    @old.task(name="plain")
    def plain(to: str) -> str:
        return to

    @new.task(name="plain")
    def plain_new(to: str, text: str = "-") -> str:
        return to + text

    job, simple = await plain_new.put("ann", text="!"), await plain_new.put("bob")
    await run(old)
    assert (await only(client)).last_error == f"UnknownTask: {plain.function.__qualname__} has no parameter 'text' here"
    assert await simple.result(timeout_s=0) == "bob"  # What is left out is no reason.
    clock.advance(60.0)
    await run(new)
    assert await job.result(timeout_s=0) == "ann!"


@pytest.mark.parametrize("arguments", [{}, {"to": 7}, "ann", [1]])
async def test_arguments_that_do_not_fit_are_buried_at_once(client: ControlPlaneClient, arguments: Any) -> None:
    app = app_of(client)

    @app.task(name="send")
    def send(to: str) -> str:
        return to

    message_id = await AsyncQueue.from_name("jobs", client=client).put(arguments, metadata={"task": "send"})
    await run(app)
    assert "cannot be called with its arguments" in ((await only(client, "dead")).last_error or "")
    with pytest.raises(JobFailed, match="cannot be called with its arguments"):
        await send.job(message_id).result(timeout_s=0)


async def test_a_renamed_task_receives_jobs_of_its_earlier_name(client: ControlPlaneClient) -> None:
    old, new = app_of(client), app_of(client)

    @old.task(name="send")
    def send(to: str) -> str:
        return to

    @new.task(name="mail.send", aliases=["send"])
    def send_mail(to: str) -> str:
        return to.upper()

    job = await send.put("ann")
    await run(new)
    assert await job.result(timeout_s=0) == "ANN"
    assert [task.name for task in new.tasks] == ["mail.send"]


async def test_other_messages_go_to_the_consumer_of_the_queue(client: ControlPlaneClient) -> None:
    app = app_of(client)

    @app.task(name="send")
    def send(to: str) -> str:
        return to

    @app.consumer("jobs", results=True)
    def take(value: Any) -> Any:
        return [value]

    jobs = [await send.put("ann"), await take.put({"to": "bob"})]
    await run(app)
    assert [await job.result(timeout_s=0) for job in jobs] == ["ann", [{"to": "bob"}]]
    with pytest.raises(ValueError, match=r"queue 'jobs' has the functions .*take and .*other"):

        @app.consumer("jobs")
        def other(value: Any) -> None: ...


async def test_a_worker_of_one_function_does_not_take_jobs_of_a_task(client: ControlPlaneClient, clock: FakeClock) -> None:
    app = app_of(client)

    @app.task(name="send")
    def send(to: str) -> str:
        return to

    taken: list[Any] = []
    job = await send.put("ann")
    await AsyncWorker(taken.append, "jobs", client=client).run(until_empty=True, signals=False)
    assert (taken, (await only(client)).failures) == ([], 0)
    clock.advance(1.0)
    await run(app)
    assert await job.result(timeout_s=0) == "ann"


async def test_a_message_without_a_task_is_given_back_where_there_is_no_consumer(client: ControlPlaneClient) -> None:
    app = app_of(client)

    @app.task(name="send")
    def send(to: str) -> None: ...

    await AsyncQueue.from_name("jobs", client=client).put({"to": "ann"})
    await run(app)
    message = await only(client)
    assert (message.failures, message.last_error) == (
        0,
        "UnknownTask: it names no task, and nothing here takes other messages of queue 'jobs'",
    )


async def test_effects_of_two_tasks_under_one_key_each_happen_once(client: ControlPlaneClient) -> None:
    app = app_of(client, idempotent=True, idempotency_key=lambda order: order)
    done: list[str] = []

    @app.task(name="charge")
    def charge(order: str) -> None:
        done.append(f"charge {order}")

    @app.task(name="ship")
    def ship(order: str) -> None:
        done.append(f"ship {order}")

    await charge.put("o-17")
    await charge.put("o-17")
    await ship.put("o-17")
    await run(app)
    assert sorted(done) == ["charge o-17", "ship o-17"]


async def test_explain_says_which_workers_know_a_task(client: ControlPlaneClient) -> None:
    app, others = app_of(client), app_of(client)

    @app.task(name="send")
    def send(to: str) -> None: ...

    @others.task(name="other")
    def other(to: str) -> None: ...

    job = await send.put("ann")
    jobs = AsyncQueue[Any].from_name("jobs", client=client)
    assert (await jobs.explain(job.id)).sentence.endswith("; no living worker serves the queue.")
    await AsyncRegistration(client.async_store, others.worker(name="others").orders, "x").beat(STOPPED)
    assert (await jobs.explain(job.id)).sentence.endswith("; no living worker of the queue knows task 'send'.")
    await AsyncRegistration(client.async_store, app.worker(name="knower").orders, "y").beat(STOPPED)
    assert (await jobs.explain(job.id)).sentence.endswith("; task 'send' is known to: knower.")


async def test_workers_that_call_different_functions_for_the_messages_of_one_queue_are_noticed(
    client: ControlPlaneClient, caplog: pytest.LogCaptureFixture
) -> None:
    def bill(value: Any) -> None: ...

    def ship(value: Any) -> None: ...

    async def beat(app: AsyncTasks, name: str) -> None:
        registration = AsyncRegistration(client.async_store, app.worker(name=name, queues=["jobs"]).orders, name)
        await registration.beat(STOPPED)
        await registration.beat(STOPPED)

    jobs = await AsyncQueue[Any].create("jobs", client=client)
    message = await jobs.put("o-17")
    await beat(app_of(client), "tasks")
    assert "no living worker of the queue has a function for such messages" in (await jobs.explain(message)).sentence
    for function, name in ((bill, "biller"), (bill, "biller-2"), (ship, "shipper")):
        assert not caplog.messages
        app = app_of(client)
        app.consumer("jobs")(function)
        await beat(app, name)
    (warning,) = caplog.messages
    both = f"{__name__}.{bill.__qualname__} (worker biller and 1 more) and {__name__}.{ship.__qualname__} (worker shipper)"
    assert both in warning
    assert (await jobs.explain(message)).sentence.endswith(f"; its workers call different functions for it: {both}.")
