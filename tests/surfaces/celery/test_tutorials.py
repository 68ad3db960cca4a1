"""Celery's "First steps" and "Next steps" run with nothing changed but the imports, in a store that HOLDFAST_URL names."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.surfaces.celery import chain, chord, group
from tests.surfaces.celery.programs import FIRST_STEPS, FIRST_STEPS_CONFIGURED, NEXT_STEPS_APP, NEXT_STEPS_TASKS

MODULES = ("tasks", "celeryconfig", "proj", "proj.celery", "proj.tasks")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apps: None) -> Iterator[Path]:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path}/jobs.db")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "proj").mkdir()
    (tmp_path / "tasks.py").write_text(FIRST_STEPS)
    (tmp_path / "celeryconfig.py").write_text(FIRST_STEPS_CONFIGURED)
    (tmp_path / "proj/__init__.py").write_text("")
    (tmp_path / "proj/celery.py").write_text(NEXT_STEPS_APP)
    (tmp_path / "proj/tasks.py").write_text(NEXT_STEPS_TASKS)
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)


def loaded(name: str) -> Any:
    return importlib.import_module(name)


def work(app: Any, queue: str = "celery") -> None:
    app.holdfast.run(queues=[queue], until_empty=True, signals=False)


def test_first_steps(folder: Path) -> None:
    tasks = loaded("tasks")
    result = tasks.add.delay(4, 4)
    assert not result.ready()
    work(tasks.app)
    assert result.ready()
    assert result.get(timeout=1) == 8


def test_first_steps_of_a_task_that_fails(folder: Path) -> None:
    tasks = loaded("tasks")
    result = tasks.add.delay(4, "four")
    work(tasks.app)
    with pytest.raises(Exception, match="TypeError"):
        result.get(timeout=1)
    assert "TypeError" in str(result.get(propagate=False))
    assert "TypeError" in result.traceback


def test_first_steps_configured_by_a_module(folder: Path) -> None:
    tasks = loaded("tasks")
    tasks.app.config_from_object("celeryconfig")
    result = tasks.add.delay(4, 4)
    work(tasks.app, "low-priority")
    assert result.get(timeout=1) == 8


def test_next_steps_calling(folder: Path) -> None:
    add, app = loaded("proj.tasks").add, loaded("proj.celery").app
    results = [add.delay(2, 2), add.apply_async((2, 2)), add.apply_async((2, 2), queue="lopri", countdown=10)]
    assert add(2, 2) == 4
    work(app)
    assert [one.get(timeout=1) for one in results[:2]] == [4, 4]
    assert [one.state for one in results] == ["SUCCESS", "SUCCESS", "PENDING"]


def test_next_steps_results(folder: Path) -> None:
    add, app = loaded("proj.tasks").add, loaded("proj.celery").app
    result = add.delay(2, "2")
    assert (result.failed(), result.successful(), result.state) == (False, False, "PENDING")
    work(app)
    assert (result.failed(), result.successful(), result.state) == (True, False, "FAILURE")
    assert app.AsyncResult(result.id).state == "FAILURE"


def test_next_steps_signatures(folder: Path) -> None:
    add, app = loaded("proj.tasks").add, loaded("proj.celery").app
    whole, partial, named = add.signature((2, 2), countdown=0), add.s(2), add.s(2, 2, debug=True)
    results = [whole.delay(), partial.delay(8), named.delay(debug=False), add.si(1, 1).delay(5)]
    work(app)
    assert [one.get(timeout=1) for one in results] == [4, 10, 4, 2]
    assert repr(partial) == "proj.tasks.add(2)"


def test_next_steps_canvas(folder: Path) -> None:
    tasks, app = loaded("proj.tasks"), loaded("proj.celery").app
    add, mul, xsum = tasks.add, tasks.mul, tasks.xsum
    partial_group, partial_chain = group(add.s(i) for i in range(10)), chain(add.s(4) | mul.s(8))
    results = [
        group(add.s(i, i) for i in range(10))(),
        partial_group(10),
        chain(add.s(4, 4) | mul.s(8))(),
        partial_chain(4),
        (add.s(4, 4) | mul.s(8))(),
        chord((add.s(i, i) for i in range(10)), xsum.s())(),
        (group(add.s(i, i) for i in range(10)) | xsum.s())(),
        (add.s(2, 2) | group(mul.s(i) for i in range(3))).delay(),
    ]
    work(app)
    doubles = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    expected = [doubles, list(range(10, 20)), 64, 64, 64, 90, 90, [0, 4, 8]]
    assert [one.get(timeout=1) for one in results] == expected


def test_next_steps_routing(folder: Path) -> None:
    app = loaded("proj.celery").app
    app.conf.update(task_routes={"proj.tasks.add": {"queue": "hipri"}}, timezone="Europe/London")
    result = loaded("proj.tasks").add.delay(2, 2)
    work(app, "hipri")
    assert result.get(timeout=1) == 4


def test_the_app_says_how_its_worker_is_started(folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"holdfast worker proj:app\.holdfast"):
        loaded("proj.celery").app.start()


def test_without_a_store_the_broker_is_refused_with_the_remedy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_URL")
    with pytest.raises(Exception, match=r"pyamqp:// is not a store of Holdfast: set broker_url, or HOLDFAST_URL"):
        loaded("tasks").add.delay(4, 4)
