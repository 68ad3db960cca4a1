"""A backend on each store, with the site's tables beside it where that is a database of Django's."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.django_site.setup import set_up

set_up()

from asgiref.sync import sync_to_async  # noqa: E402 - Django must be set up first
from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402
from django.test.utils import override_settings  # noqa: E402

from holdfast.ids import new_id  # noqa: E402
from holdfast.integrations.django.backend import HoldfastBackend  # noqa: E402
from holdfast.integrations.django.compat import (  # noqa: E402
    TaskResult,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from holdfast.integrations.django.place import shared_client, url_of  # noqa: E402
from tests.postgres import shared_postgres  # noqa: E402

BACKEND = "holdfast.integrations.django.HoldfastBackend"


def tasks_settings(url: str, **options: Any) -> dict[str, Any]:
    given = {"url": url, "max_attempts": 1, **options}
    return {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "queue_1"], "OPTIONS": given}}


def use_database(**database: Any) -> None:
    """Let the alias `default` be this database, before the connections are forgotten: a late task may make one anew at any moment."""
    connections.settings["default"] = connections.configure_settings({"default": database})["default"]
    forget_connection()
    asyncio.run(sync_to_async(forget_connection)())  # That of the thread in which async tasks use the database.


def forget_connection() -> None:
    connections["default"].close()
    del connections["default"]


def close_store() -> None:
    """Leave no connection of a worker's behind."""
    shared_client(url_of(connections["default"])).close()
    shared_client.cache_clear()


@pytest.fixture
def sqlite_site(tmp_path: Path) -> Iterator[str]:
    use_database(ENGINE="django.db.backends.sqlite3", NAME=str(tmp_path / "site.sqlite3"))
    call_command("migrate", run_syncdb=True, verbosity=0)
    yield "database:default"
    close_store()
    use_database(ENGINE="django.db.backends.sqlite3", NAME=":memory:")


@pytest.fixture
def postgres_site() -> Iterator[str]:
    """A database of its own: the site's tables and the store are made in it."""
    name = f"site_{new_id()}".replace("-", "_")
    with psycopg.connect(shared_postgres(), autocommit=True) as connection:
        connection.execute(f"create database {name}")
        info = connection.info
        use_database(
            ENGINE="django.db.backends.postgresql", NAME=name, USER=info.user, HOST=info.host, PORT=str(info.port), PASSWORD=info.password
        )
    call_command("migrate", run_syncdb=True, verbosity=0)
    yield "database:default"
    close_store()
    use_database(ENGINE="django.db.backends.sqlite3", NAME=":memory:")
    with psycopg.connect(shared_postgres(), autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def memory_site(sqlite_site: str) -> str:
    return f"memory://{new_id()}"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_site"))


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_site"))


@pytest.fixture
def backend(url: str) -> Iterator[HoldfastBackend]:
    with override_settings(TASKS=tasks_settings(url)):
        yield task_backends["default"]


@pytest.fixture
def told() -> Iterator[list[tuple[str, TaskResultStatus]]]:
    """The signals that were sent, each with the status that it told."""
    seen: list[tuple[str, TaskResultStatus]] = []

    def receiver_of(name: str) -> Any:
        def receive(sender: type, task_result: TaskResult, **_: Any) -> None:
            assert sender is HoldfastBackend
            seen.append((name, task_result.status))

        return receive

    receivers = {
        signal: receiver_of(name) for name, signal in (("enqueued", task_enqueued), ("started", task_started), ("finished", task_finished))
    }
    for signal, receiver in receivers.items():
        signal.connect(receiver, weak=False)
    yield seen
    for signal, receiver in receivers.items():
        signal.disconnect(receiver)
