"""Django is told that a job has ended when it has: not when it sleeps, is given back, or was lost to another worker."""

from typing import Any

import pytest
from django.core.management import call_command
from django.test.utils import override_settings

from holdfast.errors import JobFailed
from holdfast.integrations.django.backend import HoldfastBackend
from holdfast.integrations.django.compat import TaskResultStatus, task_backends
from holdfast.testing.django import drain
from tests.django_site import tasks
from tests.django_site.models import Order
from tests.integrations.django.conftest import tasks_settings

READY, SUCCESSFUL, FAILED = TaskResultStatus.READY, TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED

Told = list[tuple[str, TaskResultStatus]]


def work() -> None:
    call_command("holdfast_worker", queues="default", until_empty=True, concurrency=1)


def finished(told: Told) -> list[TaskResultStatus]:
    return [status for name, status in told if name == "finished"]


@pytest.mark.parametrize("task", [tasks.wait_for_answer, tasks.wait_for_answer_async])
def test_a_job_that_waits_has_not_failed(backend: HoldfastBackend, told: Told, task: Any) -> None:
    result = task.enqueue()
    assert (drain().failed, finished(told)) == (0, [])
    result.refresh()
    assert (result.status, result.errors, result.finished_at) == (READY, [], None)
    backend.job(result.id).send("answer", "yes")
    assert drain().done == 1
    result.refresh()
    assert (result.status, result.return_value, finished(told)) == (SUCCESSFUL, "yes", [SUCCESSFUL])
    assert [name for name, _ in told] == ["enqueued", "started", "finished"]


@pytest.mark.parametrize("task", [tasks.wait_for_answer, tasks.wait_for_answer_async])
def test_a_job_that_waits_has_not_failed_on_a_worker(database: str, told: Told, task: Any) -> None:
    with override_settings(TASKS=tasks_settings(database)):
        result = task.enqueue()
        work()
        result.refresh()
        assert (result.status, result.errors, finished(told)) == (READY, [], [])
        task_backends["default"].job(result.id).send("answer", "yes")
        work()
        result.refresh()
        assert (result.return_value, finished(told)) == ("yes", [SUCCESSFUL])


@pytest.mark.usefixtures("backend")
def test_a_run_that_lost_its_claim_has_not_failed(told: Told) -> None:
    result = tasks.lose_the_claim.enqueue()
    assert drain().failed == 0
    result.refresh()
    assert (result.status, result.return_value, result.errors, finished(told)) == (SUCCESSFUL, "2", [], [SUCCESSFUL])


@pytest.mark.usefixtures("backend")
def test_a_run_that_fails_too_late_does_not_replace_the_result() -> None:
    result = tasks.fail_behind_a_successor.enqueue()
    drain()
    result.refresh()
    assert (result.status, result.return_value, result.errors) == (SUCCESSFUL, 2, [])


@pytest.mark.usefixtures("backend")
def test_the_death_of_a_worker_is_an_error_behind_those_that_were_raised() -> None:
    result = tasks.fail_and_die.enqueue()
    drain()
    result.refresh()
    assert (result.status, [one.exception_class for one in result.errors]) == (FAILED, [ValueError, JobFailed])
    assert "the worker died" in result.errors[1].traceback


@pytest.mark.usefixtures("backend")
def test_a_job_that_snoozes_is_started_again_from_its_beginning(told: Told) -> None:
    result = tasks.snoozing.enqueue()
    drain()
    result.refresh()
    assert (result.status, result.return_value, result.errors) == (SUCCESSFUL, "awake", [])
    assert [name for name, _ in told] == ["enqueued", "started", "started", "finished"]


@pytest.mark.usefixtures("backend")
def test_a_throttled_job_has_not_failed(told: Told) -> None:
    result = tasks.throttled.enqueue()
    drain()
    result.refresh()
    assert (result.status, result.errors, finished(told)) == (READY, [], [])


@pytest.mark.usefixtures("backend")
def test_a_cancelled_job_has_failed(told: Told) -> None:
    result = tasks.cancelled.enqueue()
    drain()
    result.refresh()
    assert (result.status, finished(told)) == (FAILED, [FAILED])
    assert result.finished_at is not None


class TestAJobThatEndsItself:
    @pytest.fixture(autouse=True)
    def site(self, database: str) -> Any:
        with override_settings(TASKS=tasks_settings(database)):
            yield

    @pytest.mark.parametrize("run", [work, drain])
    def test_its_result_is_kept_with_its_rows(self, told: Told, run: Any) -> None:
        order = Order.objects.create(item="paper")
        result = tasks.pack_and_end.enqueue(order.pk, False)
        run()
        order.refresh_from_db()
        result.refresh()
        assert (order.packed, result.status, result.return_value) == (True, SUCCESSFUL, "packed")
        assert finished(told) == [SUCCESSFUL]

    @pytest.mark.parametrize("run", [work, drain])
    def test_its_result_vanishes_with_its_rows(self, told: Told, run: Any) -> None:
        order = Order.objects.create(item="paper")
        result = tasks.pack_and_end.enqueue(order.pk, True)
        run()
        order.refresh_from_db()
        result.refresh()
        assert (order.packed, result.status, finished(told)) == (False, FAILED, [FAILED])
        assert result.errors[0].exception_class is ValueError
