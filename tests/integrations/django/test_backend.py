"""What Django's own tests ask of a backend, on memory, SQLite and PostgreSQL."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone

from holdfast.integrations.django.backend import HoldfastBackend
from holdfast.integrations.django.compat import TaskResultDoesNotExist, TaskResultStatus
from holdfast.testing.django import drain
from tests.django_site import tasks

pytestmark = pytest.mark.usefixtures("backend")

BOTH = [tasks.noop_task, tasks.noop_task_async]


def test_the_backend_is_the_one_that_the_settings_name(backend: HoldfastBackend) -> None:
    assert tasks.noop_task.get_backend() is backend
    assert (backend.alias, backend.queues) == ("default", {"default", "queue_1"})


def test_it_supports_everything(backend: HoldfastBackend) -> None:
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority


@pytest.mark.parametrize("task", BOTH)
def test_an_enqueued_task_is_ready(task: Any) -> None:
    result = task.enqueue(1, two=3)
    assert result.status == TaskResultStatus.READY
    assert not result.is_finished
    assert result.enqueued_at is not None
    assert (result.started_at, result.finished_at, result.last_attempted_at) == (None, None, None)
    assert (result.args, result.kwargs) == ([1], {"two": 3})
    assert (result.attempts, result.errors, result.worker_ids) == (0, [], [])
    assert result.task.func == task.func
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = result.return_value


@pytest.mark.parametrize("task", BOTH)
def test_a_task_is_executed(task: Any) -> None:
    result = task.enqueue(1, two=3)
    assert drain().done == 1
    result.refresh()
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.is_finished
    assert result.return_value is None
    assert result.started_at is not None
    assert result.last_attempted_at is not None
    assert result.finished_at is not None
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert (result.args, result.kwargs, result.attempts, result.errors) == ([1], {"two": 3}, 1, [])


@pytest.mark.parametrize("task", [tasks.calculate_meaning_of_life, tasks.calculate_async])
def test_what_it_returned_is_kept(task: Any) -> None:
    result = task.enqueue()
    drain()
    assert task.get_result(result.id).return_value == 42


@pytest.mark.parametrize("task", [tasks.failing_task, tasks.failing_task_async])
def test_an_exception_is_kept_with_its_class_and_traceback(task: Any) -> None:
    result = task.enqueue()
    assert drain().failed == 1
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.is_finished
    assert result.finished_at is not None
    assert result.attempts == 1
    (error,) = result.errors
    assert error.exception_class is ValueError
    assert "This Task failed due to ValueError" in error.traceback
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_an_exception_that_cannot_be_pickled_is_kept() -> None:
    result = tasks.complex_exception.enqueue()
    drain()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.errors[0].exception_class is ValueError
    assert 'ValueError(ValueError("This task failed"))' in result.errors[0].traceback


def test_a_return_value_that_is_not_json_fails_the_task_at_once() -> None:
    result = tasks.complex_return_value.enqueue()
    assert drain().failed == 1
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.errors[0].exception_class is TypeError
    assert "returned what is not JSON" in result.errors[0].traceback


def test_a_task_that_ends_the_process_has_failed() -> None:
    result = tasks.failing_task_system_exit.enqueue()
    assert drain().failed == 1
    result.refresh()
    assert result.errors[0].exception_class is SystemExit
    assert result.errors[0].traceback.endswith("SystemExit: This Task failed due to SystemExit\n")


@pytest.mark.parametrize(("given", "kept"), [((1, 2), [1, 2]), (b"text", "text"), ({"a": (1,)}, {"a": [1]})])
def test_arguments_become_json(given: Any, kept: Any) -> None:
    result = tasks.noop_task.enqueue(given)
    assert result.args == [kept]
    assert tasks.noop_task.get_result(result.id).args == [kept]


@pytest.mark.parametrize("value", [object(), datetime(2026, 1, 1)])  # noqa: DTZ001 - any that is not JSON
def test_arguments_that_are_not_json_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.noop_task.enqueue(value)
    assert drain().done == 0


@pytest.mark.parametrize("options", [{}, {"priority": 7, "queue_name": "queue_1"}, {"run_after": timezone.now() + timedelta(hours=1)}])
def test_a_result_that_is_read_by_its_id_equals_that_of_enqueue(backend: HoldfastBackend, options: dict[str, Any]) -> None:
    result = tasks.noop_task.using(**options).enqueue("a")
    assert backend.get_result(result.id) == result
    told = result.enqueued_at
    result.refresh()
    assert result.enqueued_at == told


@pytest.mark.parametrize("id", ["nobody", "default/nobody", "elsewhere/nobody", ""])
def test_a_result_that_does_not_exist(backend: HoldfastBackend, id: str) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(id)


def test_a_result_of_another_task_is_refused() -> None:
    result = tasks.noop_task.enqueue()
    with pytest.raises(Exception, match="Task does not match"):
        tasks.calculate_meaning_of_life.get_result(result.id)


@pytest.mark.anyio
async def test_results_can_be_awaited() -> None:
    result = await tasks.noop_task.aenqueue("a")
    await result.arefresh()
    found = await tasks.noop_task.aget_result(result.id)
    assert (found.id, found.args, result.status) == (result.id, ["a"], TaskResultStatus.READY)
    # They ran in a thread of Django's, which has a connection of its own.
    await sync_to_async(connections.close_all)()


def test_a_deferred_task_waits() -> None:
    result = tasks.noop_task.using(run_after=timezone.now() + timedelta(hours=1)).enqueue()
    assert drain().done == 0
    result.refresh()
    assert result.status == TaskResultStatus.READY


def test_a_deferred_task_whose_time_has_come_runs() -> None:
    tasks.noop_task.using(run_after=timezone.now() - timedelta(seconds=1)).enqueue()
    assert drain().done == 1


def test_higher_priorities_run_first() -> None:
    tasks.ran.clear()
    for priority in (0, -100, 100, 10):
        tasks.note.using(priority=priority).enqueue(str(priority))
    drain()
    assert tasks.ran == ["100", "10", "0", "-100"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"priority": 101}, "priority must be a whole number between -100 and 100"),
        ({"priority": -101}, "priority must be a whole number between -100 and 100"),
        ({"priority": 3.1}, "priority must be a whole number between -100 and 100"),
        ({"queue_name": "nobody"}, "Queue 'nobody' is not valid for backend"),
        ({"run_after": datetime(2026, 1, 1)}, "run_after must be an aware datetime"),  # noqa: DTZ001 - that is the point
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Exception, match=said):
        tasks.noop_task.using(**change)


def test_a_function_inside_of_another_is_refused() -> None:
    def inner() -> None:
        pass

    with pytest.raises(Exception, match="module level"):
        replace(tasks.noop_task, func=inner)


def test_a_context_that_no_parameter_takes_is_refused() -> None:
    with pytest.raises(Exception, match="first argument of 'context'"):
        replace(tasks.calculate_meaning_of_life, takes_context=True)


def test_using_changes_a_copy() -> None:
    changed = tasks.noop_task.using(priority=5, queue_name="queue_1")
    assert (changed.priority, changed.queue_name) == (5, "queue_1")
    assert (tasks.noop_task.priority, tasks.noop_task.queue_name) == (0, "default")
    assert changed.enqueue().id.startswith("queue_1/")


def test_the_decorator_says_queue_and_priority() -> None:
    result = tasks.on_other_queue.enqueue()
    assert (result.task.queue_name, result.task.priority) == ("queue_1", 10)
    assert drain().done == 1


def test_names_are_paths() -> None:
    assert (tasks.noop_task.name, tasks.noop_task.module_path) == ("noop_task", "tests.django_site.tasks.noop_task")


def test_a_task_that_takes_the_context_gets_it() -> None:
    result = tasks.get_task_id.enqueue()
    drain()
    result.refresh()
    assert result.return_value == result.id


def test_calling_a_task_runs_it_here() -> None:
    assert tasks.calculate_meaning_of_life.call() == 42
    assert tasks.calculate_async.call() == 42


def test_signals_tell_of_every_step(told: list[tuple[str, TaskResultStatus]]) -> None:
    tasks.noop_task.enqueue()
    tasks.failing_task.enqueue()
    drain()
    assert told == [
        ("enqueued", TaskResultStatus.READY),
        ("enqueued", TaskResultStatus.READY),
        ("started", TaskResultStatus.RUNNING),
        ("finished", TaskResultStatus.SUCCESSFUL),
        ("started", TaskResultStatus.RUNNING),
        ("finished", TaskResultStatus.FAILED),
    ]


def test_enqueueing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    # Django's own logger has a level, that of the package has none.
    with caplog.at_level("DEBUG", "django.tasks"), caplog.at_level("DEBUG", "django_tasks"):
        result = tasks.noop_task.enqueue()
        drain()
    lines = [record.message for record in caplog.records if "tasks.noop_task" in record.message]
    assert [line.rpartition(" ")[2] for line in lines] == ["backend=default", "state=RUNNING", "state=SUCCESSFUL"]
    assert all(result.id in line for line in lines)
