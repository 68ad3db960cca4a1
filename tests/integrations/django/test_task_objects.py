"""What Django's own tests ask of tasks and backends, whatever the store."""

import dataclasses
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.test.utils import override_settings
from django.utils import timezone
from django.utils.module_loading import import_string

from holdfast.ids import new_id
from holdfast.integrations.django import task
from holdfast.integrations.django.backend import HoldfastBackend, HoldfastTask
from holdfast.integrations.django.compat import TaskResultStatus, task_backends
from holdfast.testing.django import drain
from tests.django_site import tasks
from tests.integrations.django.conftest import BACKEND, tasks_settings


@pytest.fixture(autouse=True)
def backend() -> Iterator[HoldfastBackend]:
    settings = tasks_settings(f"memory://{new_id()}")
    settings["any queue"] = {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"url": f"memory://{new_id()}"}}
    settings["missing"] = {"BACKEND": "does.not.exist"}
    with override_settings(TASKS=settings):
        yield task_backends["default"]


def test_using_changes_one_thing_after_the_other() -> None:
    moment = timezone.now() + timedelta(hours=1)
    later = tasks.noop_task.using(run_after=moment)
    urgent = later.using(priority=10)
    assert (urgent.run_after, urgent.priority, later.priority) == (moment, 10, 0)
    same = tasks.noop_task.using()
    assert same == tasks.noop_task
    assert same is not tasks.noop_task


@pytest.mark.parametrize(("alias", "said"), [("unknown", "The connection 'unknown' doesn't exist"), ("missing", "No module named 'does'")])
def test_a_backend_that_does_not_exist(alias: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        tasks.noop_task.using(backend=alias)


def test_without_backends_nothing_is_enqueued() -> None:
    with override_settings(TASKS={}), pytest.raises(Exception, match="doesn't exist"):
        tasks.noop_task.enqueue()


def test_a_backend_without_queues_takes_any() -> None:
    assert tasks.noop_task.using(queue_name="queue-2", backend="any queue").enqueue().id.startswith("queue-2/")


def test_the_queue_is_validated_when_it_is_enqueued() -> None:
    elsewhere = tasks.noop_task.using(queue_name="queue_1")
    narrow = {"default": {"BACKEND": BACKEND, "QUEUES": ["default"], "OPTIONS": {"url": f"memory://{new_id()}"}}}
    with override_settings(TASKS=narrow), pytest.raises(Exception, match="Queue 'queue_1' is not valid for backend"):
        elsewhere.enqueue()


@pytest.mark.anyio
async def test_the_queue_is_validated_when_it_is_enqueued_by_a_coroutine() -> None:
    elsewhere = tasks.noop_task.using(queue_name="queue_1")
    narrow = {"default": {"BACKEND": BACKEND, "QUEUES": ["default"], "OPTIONS": {"url": f"memory://{new_id()}"}}}
    with override_settings(TASKS=narrow), pytest.raises(Exception, match="Queue 'queue_1' is not valid for backend"):
        await elsewhere.aenqueue()


@pytest.mark.anyio
async def test_async_calls_refuse_what_the_others_refuse() -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        await tasks.noop_task.aenqueue(datetime(2026, 1, 1))  # noqa: DTZ001 - any that is not JSON
    with pytest.raises(Exception, match="123"):
        await tasks.noop_task.aget_result("123")
    result = await tasks.noop_task_async.aenqueue()
    with pytest.raises(Exception, match="Task does not match"):
        await tasks.noop_task.aget_result(result.id)
    assert await tasks.calculate_meaning_of_life.acall() == 42
    assert await tasks.calculate_async.acall() == 42


@pytest.mark.anyio
async def test_refreshing_what_did_not_change_changes_nothing() -> None:
    result = await tasks.noop_task.aenqueue()
    before = dataclasses.asdict(result)
    result.refresh()
    assert dataclasses.asdict(result) == before
    await result.arefresh()
    assert dataclasses.asdict(result) == before


def test_a_backend_that_runs_no_async_tasks_refuses_them(backend: HoldfastBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "supports_async_task", False)
    with pytest.raises(Exception, match=r"Backend does not support async [Tt]asks"):
        backend.validate_task(tasks.noop_task_async)


def test_a_path_leads_to_its_task() -> None:
    assert import_string(tasks.noop_task.module_path) is tasks.noop_task
    assert isinstance(tasks.noop_task, HoldfastTask)


@pytest.mark.parametrize("path", ["subprocess.run", "does.not.exist"])
def test_an_error_of_a_class_that_is_none(path: str) -> None:
    result = tasks.failing_task.enqueue()
    drain()
    result.refresh()
    object.__setattr__(result.errors[0], "exception_class_path", path)
    with pytest.raises((ValueError, ImportError), match=r"does not reference a valid exception|No module named"):
        _ = result.errors[0].exception_class


def test_a_builtin_function_is_no_task() -> None:
    with pytest.raises(Exception, match="must be defined at a module level"):
        task()(any)


def test_ctrl_c_ends_the_test_run_not_only_the_task() -> None:
    tasks.failing_task_keyboard_interrupt.enqueue()
    with pytest.raises(KeyboardInterrupt):
        drain()


def test_a_moment_does_not_belong_into_the_decorator() -> None:
    with pytest.raises(TypeError, match="run_after"):
        task(run_after=timezone.now())(tasks.calculate_meaning_of_life.func)


def test_a_task_gets_its_context_and_its_arguments() -> None:
    result = tasks.attempt_of.enqueue(1)
    drain()
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 1)


@pytest.mark.usefixtures("backend")
def test_what_is_logged_of_a_success_has_no_none_in_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", "django.tasks"), caplog.at_level("DEBUG", "django_tasks"):
        tasks.noop_task.enqueue()
        drain()
    assert caplog.records
    assert not [record.message for record in caplog.records if "None" in record.message]


def test_a_failure_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    result = tasks.failing_task_system_exit.enqueue()
    drain()
    (record,) = [record for record in caplog.records if record.name.startswith("django") and record.levelname == "ERROR"]
    assert result.id in record.message
    assert record.message.endswith("state=FAILED")
    assert "SystemExit: This Task failed due to SystemExit" in str(record.exc_text)
