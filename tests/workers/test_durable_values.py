"""What a durable job records: by which codec, how much of it, and where it is reported."""

import base64
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Raw, json

from holdfast import JobContext, JobFailed, StepTooLarge
from holdfast.commands import Read
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.workers.steps import history
from tests.workers.durable import Bench

SECRET = "rosebud"  # noqa: S105 - a secret of the test


class Sealed:
    """A codec whose text does not show the value."""

    name = "sealed"

    def encode(self, value: Any) -> Raw:
        return Raw(json.encode(base64.b64encode(json.encode(value)).decode()))

    def decode(self, raw: Any) -> Any:
        return json.decode(base64.b64decode(json.decode(raw)))


@pytest.fixture
def bench() -> Iterator[Bench]:
    clock = FakeClock()
    bench = Bench(MemoryStore(clock=clock), clock)
    yield bench
    bench.client.close()


def stored(bench: Bench) -> str:
    """Everything that is recorded of the jobs."""
    names = ("default-steps", "default-signals", "default-results")
    return " ".join(bytes(entry.value).decode() for name in names for entry in bench.client.store.execute(Read(name)).entries)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_codec_of_the_task_encodes_steps_and_signals_too(bench: Bench, *, sealed: bool) -> None:
    app = bench.tasks(**({"codec": Sealed()} if sealed else {}))

    @app.task(name="child")
    def child(text: str) -> str:
        return text + "!"

    @app.task(name="order")
    def order(job: JobContext, text: str) -> list[Any]:
        kept = job.step("keep", str.upper, text)
        began = job.now()
        told = job.wait("told", str)
        called, mapped = job.call(child, told), job.map(child, [child.args(told)])
        job.sleep(60)
        return [kept.lower(), told, called, mapped, began.tzinfo is not None]

    job = order.put(SECRET)
    bench.drain(app)
    job.send("told", SECRET)
    seen = stored(bench)
    bench.drain(app)
    seen += stored(bench)
    bench.drain(app, delayed=True)
    seen += stored(bench)
    assert job.result(timeout_s=0) == [SECRET, SECRET, SECRET + "!", [SECRET + "!"], True]
    # The control: without such a codec all of it can be read.
    assert ((SECRET in seen.lower()), SECRET.upper() in seen) == (not sealed, not sealed)


def test_a_job_that_records_too_many_steps_ends_and_was_warned_of(bench: Bench, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr(history, "MOST_ROWS", 20)
    app, done = bench.tasks(), list[int]()

    @app.task(name="endless")
    def endless(job: JobContext, most: int) -> int:
        for number in range(most):
            job.step("step", done.append, number)
        return most

    fits, job = endless.put(20), endless.put(1_000)
    with caplog.at_level(logging.WARNING, "holdfast.worker"):
        bench.drain(app)
    assert fits.result(timeout_s=0) == 20
    with pytest.raises(JobFailed, match=r"JobTooLong: .* has recorded 20 steps .* job.again"):
        job.result(timeout_s=0)
    assert len(done) == 40
    assert "at 20 steps" in caplog.text


def test_a_job_that_records_too_much_ends(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr(history, "MOST_BYTES", 10_000)
    app = bench.tasks()

    @app.task(name="endless")
    def endless(job: JobContext) -> None:
        for number in range(1_000):
            job.step("step", str, "x" * 1_000 + str(number))

    job = endless.put()
    bench.drain(app)
    assert (job.status().error or "").startswith("JobTooLong")
    assert 9 <= len(job.steps()) <= 10


def test_a_result_that_is_too_large_is_a_failed_step_that_can_be_caught(bench: Bench) -> None:
    app, done = bench.tasks(), list[int]()

    def large() -> str:
        done.append(1)
        return "x" * (bench.client.store.limits.value_bytes + 1)

    @app.task(name="large")
    def keeps(job: JobContext) -> str:
        try:
            return str(job.step("large", large))
        except StepTooLarge as error:
            job.sleep(60)
            return str(error)

    job = keeps.put()
    bench.drain(app, delayed=True)
    assert "return a reference to where the value is kept" in job.result(timeout_s=0)
    assert done == [1]


def test_the_history_of_a_job_that_begins_again_is_dropped(bench: Bench) -> None:
    app, rows = bench.tasks(), list[int]()

    @app.task(name="loop")
    def loop(job: JobContext, left: int) -> int:
        for number in range(5):
            job.step("step", int, number)
        rows.append(len(bench.left()["steps"]))
        return job.again(left - 1) if left else 0

    job = loop.put(3)
    bench.drain(app, delayed=True)
    assert job.result(timeout_s=0) == 0
    assert rows == [6] * 4  # The head, and the five steps of this run.
    assert bench.left() == {"steps": [], "signals": []}


def test_a_step_that_waits_for_its_next_try_says_why_in_its_status_and_in_the_log(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    app = bench.tasks()

    def pay() -> None:
        raise ConnectionError("no route")

    @app.task(name="order")
    def order(job: JobContext) -> None:
        job.step("pay", pay)

    job = order.put()
    bench.drain(app)
    assert (job.status().waiting_for or "").startswith("another try of step pay after ConnectionError: no route until ")
    (line,) = [record for record in caplog.records if record.name == "holdfast.worker" and record.levelno == logging.WARNING]
    text = line.getMessage()
    assert text.startswith(f"step 'pay' of job {job.id} of queue 'default' failed (attempt 1 of 3), again in ")
    assert text.endswith(" s: ConnectionError: no route")
    assert line.exc_info is not None


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda job, _: job.step("pay", 5), "step 'pay' calls a function, not 5"),
        (lambda job, _: job.call(len, []), r"a job calls tasks, as @app.task makes them, not .* a function is a step"),
        (lambda job, other: job.map(other, [1]), r"a map takes calls of a task, as task.args\(…\) gives them, not 1 \(int\)"),
        (lambda job, other: job.map(other, [job.tried.args()]), "a call of 'tried' cannot be put for 'other'"),
    ],
)
def test_what_is_no_function_no_task_and_no_call_is_refused(bench: Bench, call: Any, why: str) -> None:
    app = bench.tasks(max_attempts=1)

    @app.task(name="other")
    def other() -> None: ...

    @app.task(name="tried")
    def tried(job: JobContext) -> Any:
        vars(job)["tried"] = tried
        return call(job, other)

    job = tried.put()
    bench.drain(app)
    with pytest.raises(JobFailed, match=why):
        job.result(timeout_s=0)
