"""Settings that make no sense are refused, and the message names what does."""

from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings

from holdfast.integrations.django.compat import task_backends
from holdfast.testing.django import drain
from tests.django_site import tasks
from tests.integrations.django.conftest import BACKEND, tasks_settings


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"urls": "memory://"}, "unknown field `urls`; the options are url, max_attempts"),
        ({"outside": "later"}, "outside"),
        ({"max_attempts": "three"}, "max_attempts"),
        ({"tasks": {"shop.tasks.send": {"retries": 3}}}, "retries"),
    ],
)
def test_an_option_that_does_not_exist_is_refused(options: dict[str, Any], said: str) -> None:
    settings = {"default": {"BACKEND": BACKEND, "OPTIONS": options}}
    with override_settings(TASKS=settings), pytest.raises(ImproperlyConfigured, match=said):
        _ = task_backends["default"]


def test_an_unknown_database_is_refused() -> None:
    with override_settings(TASKS=tasks_settings("database:elsewhere")), pytest.raises(ImproperlyConfigured, match="no such database"):
        tasks.noop_task.enqueue()


@pytest.mark.parametrize(("options", "found"), [({}, ["holdfast.W002"]), ({"transaction_mode": "immediate"}, [])])
def test_a_check_asks_for_transactions_that_wait(options: dict[str, str], found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.DATABASES, "default", {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.sqlite3", "OPTIONS": options})
    with override_settings(TASKS=tasks_settings("database:default")):
        assert [one.id for one in task_backends["default"].check()] == found
    with override_settings(TASKS=tasks_settings("memory://")):
        assert list(task_backends["default"].check()) == []


def test_options_of_a_task_may_stand_in_the_settings(sqlite_site: str) -> None:
    options = {"tasks": {"tests.django_site.tasks.failing_task": {"max_attempts": 2}}}
    with override_settings(TASKS=tasks_settings(sqlite_site, **options)):
        result = tasks.failing_task.enqueue()
        assert drain().failed == 2
        result.refresh()
        assert (result.attempts, len(result.errors)) == (2, 2)


def test_a_task_is_tried_again_and_knows_its_attempt(sqlite_site: str) -> None:
    with override_settings(TASKS=tasks_settings(sqlite_site, max_attempts=3)):
        result = tasks.attempt_of.enqueue(3)
        assert drain().failed == 2
        result.refresh()
        assert (result.return_value, result.attempts, len(result.errors)) == (3, 3, 2)


def test_the_options_of_a_decorator_hold(sqlite_site: str) -> None:
    with override_settings(TASKS=tasks_settings(sqlite_site)):
        result = tasks.fails_slowly.enqueue()
        assert drain().failed == 1, "the back-off lets the second attempt wait"
        result.refresh()
        assert (result.status, len(result.errors)) == ("READY", 1)


def test_a_key_is_enqueued_once(sqlite_site: str) -> None:
    with override_settings(TASKS=tasks_settings(sqlite_site)):
        assert tasks.keyed.enqueue("ann").id == tasks.keyed.enqueue("ann").id
        assert drain().done == 1
