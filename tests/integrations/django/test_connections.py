"""What a long-lived worker does with Django's connections: a broken or old one is not used for the next task; and the worker may end."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections
from django.db.backends.signals import connection_created
from django.test.utils import override_settings

from holdfast.integrations.django import running
from holdfast.integrations.django.compat import TaskResultStatus
from tests.django_site import tasks
from tests.integrations.django.conftest import tasks_settings

KINDS = [(tasks.lose_the_connection, tasks.hang_up), (tasks.lose_the_connection_async, tasks.hang_up_async)]


@pytest.fixture
def lasting(postgres_site: str) -> Iterator[None]:
    """Connections that stay open from task to task."""
    connections["default"].settings_dict["CONN_MAX_AGE"] = None
    connections.settings["default"]["CONN_MAX_AGE"] = None
    with override_settings(TASKS=tasks_settings(postgres_site)):
        yield


def run(*given: Any) -> list[TaskResultStatus]:
    """The states of tasks that one thread has run, one after the other."""
    results = [task.enqueue() for task in given]
    call_command("holdfast_worker", queues="default", until_empty=True, concurrency=1)
    for result in results:
        result.refresh()
    return [result.status for result in results]


@pytest.mark.usefixtures("lasting")
@pytest.mark.parametrize(("breaks", "next_one"), KINDS)
def test_a_connection_that_broke_is_not_used_again(breaks: Any, next_one: Any) -> None:
    assert run(breaks, next_one) == [TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL]


@pytest.mark.usefixtures("lasting")
def test_control_without_closing_the_next_task_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "close_old_connections", lambda: None)
    assert run(*KINDS[0]) == [TaskResultStatus.FAILED, TaskResultStatus.FAILED]


def test_a_connection_lasts_as_long_as_conn_max_age_says(sqlite_site: str) -> None:
    made: list[object] = []

    def note(sender: object, connection: object, **_: object) -> None:
        made.append(connection)

    with override_settings(TASKS=tasks_settings(sqlite_site)):
        tasks.note.enqueue("opens the connection of this thread, and the store")
        run()
        connection_created.connect(note, weak=False)
        try:
            run(tasks.count_orders, tasks.count_orders, tasks.count_orders)
        finally:
            connection_created.disconnect(note)
    assert len(made) - made.count(connections["default"]) == 3, "CONN_MAX_AGE is 0"


def test_a_worker_may_end_after_some_jobs(sqlite_site: str) -> None:
    with override_settings(TASKS=tasks_settings(sqlite_site)):
        results = [tasks.noop_task.enqueue() for _ in range(3)]
        call_command("holdfast_worker", queues="default", max_jobs=2, concurrency=1)
        for result in results:
            result.refresh()
    assert [result.status for result in results] == [TaskResultStatus.SUCCESSFUL] * 2 + [TaskResultStatus.READY]
