"""`manage.py holdfast_worker` and `holdfast_schedules`, against a database that other processes share."""

from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings

from holdfast import Queue
from holdfast.integrations.django.backend import HoldfastBackend
from holdfast.integrations.django.compat import TaskResultStatus, task_backends
from tests.django_site import tasks
from tests.django_site.models import Order
from tests.integrations.django.conftest import tasks_settings


@pytest.fixture
def site(database: str) -> Iterator[HoldfastBackend]:
    with override_settings(TASKS=tasks_settings(database, max_attempts=2)):
        yield task_backends["default"]


def work(queues: str = "default") -> None:
    call_command("holdfast_worker", queues=queues, until_empty=True, concurrency=2)


def test_a_worker_runs_sync_and_async_tasks(site: HoldfastBackend) -> None:
    results = [tasks.calculate_meaning_of_life.enqueue(), tasks.calculate_async.enqueue()]
    work()
    for result in results:
        result.refresh()
        assert (result.status, result.return_value, result.attempts) == (TaskResultStatus.SUCCESSFUL, 42, 1)
        assert result.enqueued_at <= result.started_at <= result.finished_at


def test_a_task_writes_rows_on_the_worker(site: HoldfastBackend) -> None:
    order = Order.objects.create(item="paper")
    tasks.pack.enqueue(order.pk)
    work()
    order.refresh_from_db()
    assert order.packed


def test_a_worker_serves_all_queues_of_its_backend(site: HoldfastBackend) -> None:
    results = [tasks.on_other_queue.enqueue(), tasks.calculate_meaning_of_life.enqueue()]
    call_command("holdfast_worker", until_empty=True)
    for result in results:
        result.refresh()
        assert result.status == TaskResultStatus.SUCCESSFUL


def test_a_failure_is_kept_and_tried_again(site: HoldfastBackend) -> None:
    result = tasks.fails_slowly.enqueue()
    work()
    result.refresh()
    assert (result.status, result.attempts, len(result.errors)) == (TaskResultStatus.READY, 1, 1)
    assert result.errors[0].exception_class is ValueError


def test_a_job_of_the_worker_is_a_job_of_holdfast(site: HoldfastBackend) -> None:
    result = tasks.job_of_holdfast.enqueue()
    work()
    result.refresh()
    assert result.return_value is True


def test_another_backend_is_refused(site: HoldfastBackend) -> None:
    with override_settings(TASKS={"default": {"BACKEND": dummy()}}), pytest.raises(CommandError, match="not a HoldfastBackend"):
        work()


def dummy() -> str:
    return f"{type(tasks.noop_task).__mro__[1].__module__.rpartition('.')[0]}.backends.dummy.DummyBackend"


def test_a_schedule_of_the_settings_is_saved_listed_paused_and_run(database: str) -> None:
    said = {"nightly": {"task": "tests.django_site.tasks.note", "rule": "0 3 * * *", "args": ["night"], "tz": "Europe/Vienna"}}
    with override_settings(TASKS=tasks_settings(database, schedules=said)):
        work()
        assert "nightly: 0 3 * * * (Europe/Vienna) into default, next 20" in listed()
        call_command("holdfast_schedules", pause="nightly")
        assert "paused" in listed()
        call_command("holdfast_schedules", resume="nightly")
        tasks.ran.clear()
        assert listed(run="nightly").startswith("put job ")
        work()
        assert tasks.ran == ["night"]


def test_a_run_of_a_schedule_has_the_priority_of_its_task(sqlite_site: str) -> None:
    said = {"nightly": {"task": "tests.django_site.tasks.on_other_queue", "rule": "0 3 * * *"}}
    with override_settings(TASKS=tasks_settings(sqlite_site, schedules=said)):
        work()
        listed(run="nightly")
        (message,) = Queue("queue_1", client=task_backends["default"].place.client).browse()
    assert message.priority == 10


def test_a_schedule_of_an_unknown_task_is_refused(sqlite_site: str) -> None:
    said = {"nightly": {"task": "shop.nothing", "rule": "0 3 * * *"}}
    settings = override_settings(TASKS=tasks_settings(sqlite_site, schedules=said))
    with settings, pytest.raises(CommandError, match=r"no task 'shop\.nothing'"):
        work()


def listed(**options: str) -> str:
    out = StringIO()
    call_command("holdfast_schedules", stdout=out, **options)
    return out.getvalue()
