"""A job of a Django site is there exactly if the row is; and where it cannot be, the settings say what happens."""

import threading
import unittest
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django import test
from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.core import checks
from django.core.management import call_command
from django.db import IntegrityError, connections, transaction
from django.test.utils import override_settings

from holdfast import Queue, QueueFull
from holdfast.commands.topics import queue_topic
from holdfast.ids import new_id
from holdfast.integrations.django.backend import HoldfastBackend
from holdfast.integrations.django.compat import TaskResultStatus, task_backends
from holdfast.testing.django import drain
from tests.django_site import tasks
from tests.django_site.models import Order
from tests.integrations.django.conftest import tasks_settings
from tests.runners import Runner, waiting_on


@pytest.fixture
def site(database: str) -> Iterator[HoldfastBackend]:
    with override_settings(TASKS=tasks_settings(database)):
        yield task_backends["default"]


def jobs(backend: HoldfastBackend) -> int:
    return Queue("default", client=backend.place.client).stats().total


class Declined(Exception):  # noqa: N818 - as in the other tests of transactions
    """What makes a transaction roll back."""


def test_a_job_commits_with_its_row(site: HoldfastBackend) -> None:
    with transaction.atomic():
        tasks.pack.enqueue(Order.objects.create(item="paper").pk)
        assert connections["default"].vendor == "sqlite" or jobs(site) == 0, "others must not see it before the commit"
    assert (Order.objects.count(), jobs(site)) == (1, 1)
    assert drain().done == 1
    assert Order.objects.get().packed


def test_a_job_vanishes_with_its_row(site: HoldfastBackend) -> None:
    with suppress(Declined), transaction.atomic():
        result = tasks.pack.enqueue(Order.objects.create(item="paper").pk)
        assert site.get_result(result.id).status == TaskResultStatus.READY, "the transaction must see its own job"
        raise Declined
    assert (Order.objects.count(), jobs(site)) == (0, 0)


def test_a_savepoint_that_is_rolled_back_takes_its_job_along(site: HoldfastBackend) -> None:
    with transaction.atomic():
        tasks.pack.enqueue(Order.objects.create(item="paper").pk)
        with suppress(Declined), transaction.atomic():
            tasks.pack.enqueue(Order.objects.create(item="glass").pk)
            raise Declined
    assert (Order.objects.count(), jobs(site)) == (1, 1)


def test_a_commit_that_fails_takes_its_job_along(site: HoldfastBackend) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():  # noqa: PT012 - it is the commit that fails
        # Foreign keys of Django's tables are checked at the commit.
        LogEntry.objects.create(user_id=7, action_flag=CHANGE)
        result = tasks.noop_task.enqueue()
        assert site.get_result(result.id).status == TaskResultStatus.READY
    assert jobs(site) == 0


def test_an_enqueue_that_fails_fails_the_transaction(site: HoldfastBackend) -> None:
    Queue.create("default", client=site.place.client).configure(maxsize=1)
    tasks.noop_task.enqueue()
    with pytest.raises(QueueFull), transaction.atomic():  # noqa: PT012 - it is the whole transaction that fails
        Order.objects.create(item="paper")
        tasks.noop_task.enqueue()
    assert (Order.objects.count(), jobs(site)) == (0, 1)


def test_outside_of_a_transaction_a_job_is_there_at_once(site: HoldfastBackend) -> None:
    tasks.noop_task.enqueue()
    assert jobs(site) == 1


def test_a_request_is_one_transaction(site: HoldfastBackend) -> None:
    assert test.Client().get("/order/?item=ink").status_code == 200
    assert (Order.objects.count(), jobs(site)) == (1, 1)


def test_who_waits_is_woken_by_the_commit(sqlite_site: str) -> None:
    """SQLite tells nobody of a commit, so Django's `on_commit` does."""
    with override_settings(TASKS=tasks_settings(sqlite_site)), Runner() as runner:
        backend = task_backends["default"]
        queue: Queue[object] = Queue.create("default", client=backend.place.client)
        waiting = runner.start(lambda: queue.claim(timeout_s=60.0, poll_interval_s=600.0))
        runner.until(lambda: waiting_on(backend.place.client.store, queue_topic("default")) == 1)
        with transaction.atomic():
            tasks.noop_task.enqueue()
        assert waiting.result() is not None


def test_a_test_case_rolls_jobs_back(site: HoldfastBackend) -> None:
    class Tests(test.TestCase):
        databases = frozenset({"default"})

        def test_a(self) -> None:
            tasks.pack.enqueue(Order.objects.create(item="paper").pk)
            assert drain().done == 1
            assert Order.objects.get().packed
            tasks.noop_task.enqueue()

    result = unittest.TestResult()
    unittest.TestSuite([Tests("test_a")]).run(result)
    assert (result.errors, result.failures) == ([], [])
    assert (Order.objects.count(), jobs(site)) == (0, 0)


def test_a_database_in_memory_is_enough_for_tests() -> None:
    with override_settings(TASKS=tasks_settings("database:default")):
        call_command("migrate", run_syncdb=True, verbosity=0)
        with transaction.atomic():
            result = tasks.calculate_meaning_of_life.enqueue()
        assert drain().done == 1
        result.refresh()
        assert result.return_value == 42
    connections["default"].close()


class TestAnotherStore:
    """The store takes no part in the transaction."""

    @pytest.fixture
    def elsewhere(self, sqlite_site: str) -> str:
        return f"memory://{new_id()}"

    def test_control_now_leaves_a_job_without_its_row(self, elsewhere: str) -> None:
        with override_settings(TASKS=tasks_settings(elsewhere, outside="now")):
            with suppress(Declined), transaction.atomic():
                tasks.pack.enqueue(Order.objects.create(item="paper").pk)
                raise Declined
            assert (Order.objects.count(), jobs(task_backends["default"])) == (0, 1)

    def test_on_commit_puts_the_job_after_the_commit(self, elsewhere: str) -> None:
        with override_settings(TASKS=tasks_settings(elsewhere, outside="on_commit")):
            backend = task_backends["default"]
            with suppress(Declined), transaction.atomic():
                tasks.pack.enqueue(Order.objects.create(item="paper").pk)
                raise Declined
            assert jobs(backend) == 0
            with transaction.atomic():
                result = tasks.pack.enqueue(Order.objects.create(item="paper").pk)
                assert jobs(backend) == 0
            assert backend.get_result(result.id).status == TaskResultStatus.READY

    @pytest.fixture
    def atomic_requests(self, elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(settings.DATABASES["default"], "ATOMIC_REQUESTS", True)

    @pytest.mark.usefixtures("atomic_requests")
    @pytest.mark.parametrize(("options", "found"), [({}, ["holdfast.W001"]), ({"outside": "now"}, []), ({"outside": "on_commit"}, [])])
    def test_a_check_asks_for_the_choice_while_requests_are_transactions(self, elsewhere: str, options: Any, found: list[str]) -> None:
        with override_settings(TASKS=tasks_settings(elsewhere, **options)):
            assert [one.id for one in task_backends["default"].check()] == found
            assert [one.id for one in checks.run_checks() if one.id.startswith("holdfast")] == found

    def test_without_such_requests_the_check_is_silent(self, elsewhere: str) -> None:
        with override_settings(TASKS=tasks_settings(elsewhere)):
            assert [one.id for one in task_backends["default"].check()] == []


def test_threads_have_connections_of_their_own(site: HoldfastBackend) -> None:
    def enqueue() -> None:
        try:
            with transaction.atomic():
                tasks.noop_task.enqueue()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=enqueue) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert jobs(site) == 4
