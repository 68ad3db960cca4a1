"""Ten modules that were written for Celery run when their imports name the surface instead, and nothing else is changed."""

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Queue, Schedule
from holdfast.commands import Browse, Move
from holdfast.surfaces.celery import Celery
from holdfast.surfaces.celery.app import current_app
from tests.surfaces.celery.modules import ORIGINS

Load = Callable[[str], Any]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apps: None) -> Iterator[Load]:
    """Import a module with its imports changed; one without an app of its own belongs to another's."""
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path}/jobs.db")
    monkeypatch.syspath_prepend(tmp_path)
    for name, origin in ORIGINS.items():
        changed = re.sub(r"^(from|import) celery\b", r"\1 holdfast.surfaces.celery", origin, flags=re.MULTILINE)
        (tmp_path / f"celery_{name}.py").write_text(changed)

    def loaded(name: str) -> Any:
        module = importlib.import_module(f"celery_{name}")
        if not hasattr(module, "app"):
            Celery("shop", broker="redis://localhost")
        return module

    yield loaded
    for name in ORIGINS:
        sys.modules.pop(f"celery_{name}", None)


def work() -> None:
    """Run everything, and what is delayed as if its time had come."""
    app = current_app()
    queues = [Queue[Any](name, client=app.client) for name in app.queues]
    while any(stats.total > stats.dead for stats in (queue.stats() for queue in queues)):
        for name in app.queues:
            app.client.store.execute(Move(name, to="due", ids=[one.id for one in app.client.store.execute(Browse(name)).messages]))
        app.holdfast.run(queues=app.queues, until_empty=True, signals=False)


def test_there_are_ten() -> None:
    assert len(ORIGINS) == 10


def test_mail_is_sent_again_after_an_error(load: Load) -> None:
    mail = load("mail")
    result = mail.send_welcome.delay("ann@example.org", language="de")
    work()
    assert result.state == "SUCCESS"
    assert mail.outbox == [("ann@example.org", "de", 1)]


def test_webhooks_are_tried_again_for_some_errors_and_not_for_others(load: Load) -> None:
    webhooks = load("webhooks")
    delivered, verified = webhooks.deliver.delay("https://a.example", [1]), webhooks.verify.delay("https://b.example")
    work()
    assert delivered.get(timeout=1)["status"] == 200
    assert webhooks.calls.count("https://a.example") >= 3
    assert verified.state == "FAILURE"
    assert webhooks.calls.count("https://b.example") == 1


def test_thumbnails_are_published_when_all_are_made(load: Load) -> None:
    result = load("thumbnails").make_all("cat.png", "pets")
    work()
    assert result.get(timeout=1) == {"gallery": "pets", "paths": ["cat.png@1024", "cat.png@256", "cat.png@64"]}


def test_a_report_is_a_chain_on_a_queue_of_its_own(load: Load) -> None:
    result = load("reports").monthly(2)
    work()
    assert result.get(timeout=1) == "Sales: 120"


def test_an_import_says_how_far_it_is(load: Load) -> None:
    importing = load("importing")
    result = importing.import_rows.delay([" a", "b "])
    work()
    assert result.get(timeout=1) == {"imported": 2}
    assert importing.seen == [(result.id, "a"), (result.id, "b")]


def test_cleaning_up_is_scheduled(load: Load) -> None:
    app = load("cleanup").app
    app.holdfast.sync_schedules()
    found = {one.name: one.rule for one in Schedule.list(client=app.client)}
    assert found == {"sessions-every-night": "30 3 * * *", "uploads-every-hour": "every 3600 s", "heartbeat": "every 30 s"}


def test_a_payment_that_never_succeeds_raises_an_alarm(load: Load) -> None:
    payments = load("payments")
    result = payments.charge.delay("o-1", 5)
    work()
    assert result.get(timeout=1) == "given up"
    assert (payments.tries, payments.alarms) == (["o-1"] * 3, [("o-1", "timeout")])


def test_a_task_puts_others_and_their_states_are_found_by_id(load: Load) -> None:
    search = load("search")
    result = search.rebuild.delay({"b": "two", "a": "one"})
    work()
    assert search.states(result.get(timeout=1)) == ["SUCCESS", "SUCCESS"]
    assert search.index == {"a": "one", "b": "two"}


def test_notifications_go_to_all_and_reminders_wait(load: Load) -> None:
    notifications = load("notifications")
    reminder, all_of_them = notifications.remind("ann", "soon"), notifications.broadcast(["bob", "eve"], "hello")
    assert reminder.state == "PENDING"
    work()
    assert all_of_them.get(timeout=1) == ["bob", "eve"]
    assert sorted(notifications.sent) == [("ann", "soon"), ("bob", "hello"), ("eve", "hello")]


def test_exports_are_put_by_name_and_what_is_rejected_fails(load: Load) -> None:
    exports = load("exports")
    csv, rejected, later = exports.by_name([1, 2], "csv"), exports.by_name([1], "xls"), exports.later([3])
    work()
    assert csv.get(timeout=1) == f"{csv.id}.csv"
    assert rejected.state == "FAILURE"
    assert later.get(timeout=1) == f"{later.id}.csv"
    assert sorted(exports.done) == [("csv", 1), ("csv", 2)]


def test_control_with_celerys_imports_they_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "celery", None)
    (tmp_path / "celery_unchanged.py").write_text(ORIGINS["mail"])
    with pytest.raises(ImportError):
        importlib.import_module("celery_unchanged")
