"""Handlers in processes of their own: what they do is seen, and what they break stays theirs."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Backoff, ControlPlaneClient, Dict, Job, JobCancelled, JobFailed, Queue, Worker
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.workers.execution import processes
from tests.runners import Runner
from tests.workers import handlers, unready


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(clock: FakeClock) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient.on(MemoryStore(clock=clock)) as made:
        yield made


def made(function: Callable[..., Any], client: ControlPlaneClient, **options: Any) -> Worker[Any, Any, Any]:
    return Worker(function, "jobs", client=client, execution="processes", backoff=Backoff(0.0, jitter=0.0), **options)


@pytest.mark.parametrize("function", [handlers.double, handlers.double_async])
def test_a_child_runs_sync_and_async_functions(function: Callable[..., Any], client: ControlPlaneClient) -> None:
    worker = made(function, client, results=True, concurrency=2)
    jobs = worker.put_many([1, 2, 3])
    worker.run(until_empty=True)
    assert [job.result() for job in jobs] == [2, 4, 6]


@pytest.mark.parametrize("prefetch", [0, 3])
def test_it_is_another_process_and_the_same_for_the_next_job(client: ControlPlaneClient, prefetch: int) -> None:
    worker = made(handlers.where, client, results=True, prefetch=prefetch)
    jobs = worker.put_many([1, 2, 3, 4])
    worker.run(until_empty=True)
    (pid,) = {job.result() for job in jobs}
    assert pid != os.getpid()


def test_a_message_that_kills_its_process_is_dead_at_its_budget_and_the_pool_lives(client: ControlPlaneClient) -> None:
    worker = made(handlers.die, client, max_attempts=2)
    worker.put_many(["die", "fine", "exit"])
    worker.run(until_empty=True)
    letters = {one.value: (one.failures, one.last_error) for one in Queue[str]("jobs", client=client).dead_letters()}
    assert letters == {"die": (2, "its process was killed by SIGKILL"), "exit": (2, "its process ended with exit code 3")}
    assert (worker.health.done, Queue[str]("jobs", client=client).length()) == (1, 0)


def test_what_a_child_reports_puts_and_writes_is_done_by_its_worker(client: ControlPlaneClient) -> None:
    worker = made(handlers.follow, client)
    worker.put(5)
    worker.run(until_empty=True)
    assert Queue[int]("next", client=client).get() == 6
    assert Dict[int]("totals", client=client).get("sum") == 5


def test_the_log_has_the_traceback_of_a_child(client: ControlPlaneClient, caplog: pytest.LogCaptureFixture) -> None:
    worker = made(handlers.fail_with_a_reason, client, max_attempts=1)
    worker.put(1)
    worker.run(until_empty=True)
    assert "failed (attempt 1 of 1) and is dead: ValueError: raised in a child\nTraceback (most recent call last):\n" in caplog.text
    assert "in fail_with_a_reason\n" in caplog.text


def test_a_child_chooses_its_ending(client: ControlPlaneClient) -> None:
    worker = made(handlers.snooze, client)
    worker.put(1)
    worker.run(until_empty=True)
    (message,) = Queue[int]("jobs", client=client).browse()
    assert message.failures == 0


def test_a_soft_limit_interrupts_a_system_call(client: ControlPlaneClient, clock: FakeClock, tmp_path: Path) -> None:
    running = tmp_path / "running"
    worker = made(handlers.obey, client, soft_limit_s=30.0, max_attempts=1)
    worker.put(str(running))
    with worker, Runner() as runner:
        runner.until(running.exists)
        clock.advance(31.0)
        runner.until(lambda: worker.health.failed == 1)
    (letter,) = Queue[str]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith("TimeLimitExceeded")


def test_a_child_is_killed_at_the_hard_limit_and_replaced(
    client: ControlPlaneClient, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = [tmp_path / name for name in ("one", "two")]
    worker = made(handlers.defy, client, hard_limit_s=30.0, max_attempts=1)
    worker.put_many([str(path) for path in running])
    with Runner() as runner:
        worker.start()
        runner.until(running[0].exists)
        clock.advance(31.0)
        runner.until(running[1].exists)
        assert worker.health.failed == 1
        worker.stop(grace_s=0.0)
    (letter,) = Queue[str]("jobs", client=client).dead_letters()
    assert (letter.last_error or "").startswith("TimeLimitExceeded")
    assert "in defy" in caplog.text


@pytest.mark.parametrize("function", [handlers.obey, handlers.obey_async, handlers.chatter])
def test_a_running_job_in_a_child_is_cancelled(function: Callable[..., Any], client: ControlPlaneClient, tmp_path: Path) -> None:
    running = tmp_path / "running"
    worker = made(function, client, results=True)
    job = worker.put(str(running))
    with worker, Runner() as runner:
        runner.until(running.exists)
        assert Job("jobs", job.id, client=client).cancel() == "requested"
        with pytest.raises(JobCancelled):
            job.result(timeout_s=60.0)
    assert worker.health.failed == 0


def test_a_job_that_is_cancelled_before_it_begins_is_not_run_in_a_child(client: ControlPlaneClient, tmp_path: Path) -> None:
    running = tmp_path / "running"
    worker = made(handlers.obey, client, results=True)
    job = worker.put(str(running))
    claim = Queue[str]("jobs", client=client).claim(claimer="another")
    assert claim is not None
    assert job.cancel() == "requested"
    with worker, Runner() as runner:
        shift = worker._shift
        assert shift is not None
        runner.until(lambda: bool(shift._crews[0]._cancelled))
        claim.release()
        with pytest.raises(JobCancelled):
            job.result(timeout_s=60.0)
    assert not running.exists()


def test_a_job_for_which_no_process_can_be_started_is_tried_again_and_burns_nothing(
    client: ControlPlaneClient, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise BlockingIOError("too many processes")

    worker = made(handlers.double, client, results=True, max_attempts=1)
    job = worker.put(4)
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_Child", refuse)
        worker.run(until_empty=True)
    (message,) = Queue[int]("jobs", client=client).browse()
    assert (message.failures, message.last_error) == (0, "no process could be started for it")
    clock.advance(1.0)
    worker.run(until_empty=True)
    assert job.result() == 8


def test_a_child_that_cannot_start_burns_nothing(
    client: ControlPlaneClient, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worker = made(unready.double, client, results=True, max_attempts=1)
    job = worker.put(4)
    with monkeypatch.context() as patch:
        patch.setenv("UNREADY", "1")
        worker.run(until_empty=True)
    (message,) = Queue[int]("jobs", client=client).browse()
    assert (message.failures, message.last_error) == (0, "no process could be started for it")
    assert "a child process ended with exit code 1 before it could begin a job" in caplog.text
    clock.advance(1.0)
    worker.run(until_empty=True)
    assert job.result() == 8


def test_stopping_gives_back_what_a_child_runs(client: ControlPlaneClient, tmp_path: Path) -> None:
    running = tmp_path / "running"
    worker = made(handlers.obey, client, max_attempts=1)
    worker.put(str(running))
    with Runner() as runner:
        worker.start()
        runner.until(running.exists)
        worker.stop(grace_s=0.0)
    (message,) = Queue[str]("jobs", client=client).browse()
    assert (message.state, message.failures) == ("ready", 0)


def test_a_decorated_function_is_found_by_its_name(client: ControlPlaneClient) -> None:
    worker = handlers.decorated
    own = Worker(worker.function, "decorated", client=client, execution="processes", results=True)
    job = own.put(1)
    own.run(until_empty=True)
    assert job.result() == 2


def test_a_function_that_no_child_finds_is_refused_before_it_is_run(client: ControlPlaneClient) -> None:
    worker = made(lambda value: value, client)
    with pytest.raises(ValueError, match="cannot run in processes"):
        worker.run()


def test_a_value_that_cannot_be_kept_fails_in_the_child(client: ControlPlaneClient) -> None:
    worker = made(handlers.die, client, results=True, max_attempts=1)
    job = worker.put({"not": "hashable"})
    worker.run(until_empty=True)
    assert job.result() is None
    job = worker.put("die")
    worker.run(until_empty=True)
    with pytest.raises(JobFailed, match="SIGKILL"):
        job.result()
