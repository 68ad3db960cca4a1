"""Every public call of tasks, with the types a user sees; nothing here runs, type checkers read it."""

import sqlite3
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Never, assert_type

from msgspec import Raw

from holdfast import (
    BatchFailed,
    BatchTask,
    Bound,
    Call,
    Consumer,
    ControlPlaneClient,
    Every,
    Job,
    JobContext,
    JobError,
    JobStatus,
    JobStep,
    Outgoing,
    Schedule,
    Synced,
    Task,
    Tasks,
    TaskSchedule,
    Worker,
    aio,
    current_job,
)
from holdfast.commands import Item


@dataclass
class Page:
    picture: str


app = Tasks("shop", queue="default", base_url="memory://", max_attempts=5)


@app.task
def post(to: str, *, text: str = "") -> int:
    return len(to + text)


@app.task(queue="media", name="render", aliases=["draw"], version="2", versions=["1"], priority=1)
async def render(job: JobContext, page: int) -> Page:
    return Page(f"{job.id} {page}")


@app.consumer("raw", results=True)
def take(value: int) -> str:
    return str(value)


@app.batch(size=100, within_s=0.5, queue="index", max_attempts=5)
def index(pages: list[str]) -> list[int]:
    return [len(page) for page in pages]


@app.batch()
async def forget(pages: list[int]) -> None: ...


def tasks() -> None:
    assert_type(post("ann", text="hi"), int)
    assert_type(post.put("ann", text="hi"), Job[int])
    assert_type(render.put(page=3), Job[Page])
    assert_type(post.args("ann"), Call[int])
    Schedule("post every day", "@daily", post.args("ann"), tz="Europe/Vienna")
    assert_type(post.put_many([post.args("ann"), post.args("bob", text="x")]), list[Job[int]])
    assert_type(post.using(delay_s=60.0, priority=5, key=("mail", "ann"), timeout_s=1.0).put("ann"), Job[int])
    assert_type(post.using(connection=sqlite3.connect("app.db")).put_many([post.args("ann")]), list[Job[int]])
    assert_type(post.job("id").result(), int)
    assert_type(post.job("id").status(), JobStatus)
    assert_type(post.job("id").status().errors, tuple[JobError, ...])
    for status in post.job("id").watch():
        assert_type(status, JobStatus)
    assert_type(post.job("id").retry(), bool)
    assert_type((post.name, post.queue, post.client), tuple[str, str, ControlPlaneClient])
    assert_type(post.function("ann"), int)
    assert_type(post.options.max_attempts, int | None)
    assert_type(take.put(1), Job[str])
    assert_type(take.put_many([1]), list[Job[str]])
    assert_type(take(1), str)
    assert_type((take.options.queue, take.function(1), take.queue, take.client), tuple[str, str, str, ControlPlaneClient])
    assert_type(take.job("id"), Job[str])
    assert_type(app.worker(queues=["default"], concurrency=8), Worker[Never, Any, Any])
    assert_type(Worker.of_orders(app.worker().orders), Worker[Any, Any, Any])
    assert_type((app.name, app.queue, app.flow_queue, app.queues, app.client), tuple[str, str, str, list[str], ControlPlaneClient])
    assert_type(app.tasks, list[Task[..., Any, Any]])
    assert_type(app.schedule("@daily", post, "ann", text="x").options(tz="Europe/Vienna", name="daily"), TaskSchedule)
    assert_type(app.schedule(Every(hours=6), render, page=3).entry.queue, str)
    assert_type(app.schedule("@daily", post, "ann").run_now(), Job[Any])
    assert_type(app.schedules, list[Schedule])
    assert_type(post.message(post.args("ann")), Item)
    assert_type(current_job(), JobContext | None)
    assert_type(post.job("id").send("approved", "ann", id="1"), bool)
    assert_type(post.job("id").steps(), list[JobStep])
    assert_type(post.message_without(Raw(b"{}")), Item)
    app.around(nullcontext, per="worker")
    app.on_put(lambda outgoing: assert_type(outgoing, Outgoing))
    app.include(Tasks("other"))
    with app.override(dict, {}):
        assert_type(app.find("render"), Task[..., Any, Any])
    assert_type(app.declared, list[TaskSchedule])
    assert_type(app.sync_schedules(prune=True), Synced)
    assert_type(app.flow("invoice").put(), Job[dict[str, Any]])
    app.run(until_empty=True, concurrency=2)


def ended(job: JobContext) -> None:
    job.done({"sent": 1}, connection=sqlite3.connect("app.db"))


def batched() -> None:
    assert_type(index, BatchTask[str, int, list[int]])
    assert_type(index.put("a"), Job[int])
    assert_type(index.using(delay_s=1.0).put("a"), Job[int])
    assert_type(index.put_many([index.args("a"), index.args("b")]), list[Job[int]])
    assert_type(index(["a", "b"]), list[int])
    assert_type(forget.put(1), Job[None])
    assert_type(BatchFailed({0: ValueError("no")}, results=[1, 2]).failed, dict[int, BaseException])


def annotated(task: Task[[str], int, int], bound: Bound[[str], int], consumer: Consumer[int, str, str]) -> None:
    assert_type(task.put("ann"), Job[int])
    assert_type(bound.put("ann"), Job[int])
    assert_type(consumer.put(1), Job[str])


async def tasks_for_tasks() -> None:
    assert_type(await render(page=3), Page)
    assert_type(await post.aio.put("ann"), aio.Job[int])
    assert_type(await post.aio.using(delay_s=1.0).put("ann"), aio.Job[int])
    assert_type(await take.aio.put(1), aio.Job[str])
    await app.aio.run(until_empty=True)
