"""For every fault of the older systems a surface that has it: its test would be worth nothing if it passed."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.stores.memory import MemoryStore
from holdfast.surfaces.leasedkeyq import LeasedKeyQueue
from holdfast.surfaces.localqueue import PersistentQueue, URLQueueStore
from holdfast.testing.clock import FakeClock
from tests.sentinel_databases import sqlite_connections
from tests.surfaces.broken import leasedkeyq, localqueue, sentinel, sssn
from tests.surfaces.broken.fault import Fault
from tests.testing.controls import PlainStore

FAULTS = localqueue.FAULTS + leasedkeyq.FAULTS + sssn.FAULTS + sentinel.FAULTS


class Plain(PlainStore):
    """Takes no fast path past what is broken, and offers none."""

    def fast(self, queue: str) -> None:  # type: ignore[override]
        del queue


@contextmanager
def fixtures(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What the tests ask for, in memory."""
    clock = FakeClock()
    memory = Plain(clock=clock, by_reference=True)
    with ControlPlaneClient.on(MemoryStore(clock=clock)) as client, sqlite_connections(tmp_path) as get_conn, closing(memory):
        store = URLQueueStore(client)
        known = {"store": store, "jobs": PersistentQueue[Any]("jobs", store=store), "clock": clock, "memory": memory, "client": client}
        known |= {"queue": LeasedKeyQueue[Any, Any](store=client), "get_conn": get_conn, "conn": get_conn(), "tmp_path": tmp_path}
        yield known | {name: request.getfixturevalue(name) for name in ("caplog", "monkeypatch")}


def runs(test: Callable[..., Any], request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseException | None]:
    """Run a test with all that it is parametrised with; what it raised each time, None where it passed."""
    for number, parameters in enumerate(parameters_of(test)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with fixtures(request, folder) as known:
            asked = {name: {**known, **parameters}.get(name) for name in inspect.signature(test).parameters}
            try:
                answer = test(**asked)
                if inspect.iscoroutine(answer):
                    asyncio.run(answer)
            except BaseException as error:  # noqa: BLE001 - however a test notices; pytest's own failures are no Exceptions
                yield error
            else:
                yield None


def parameters_of(test: Any) -> Iterator[dict[str, Any]]:
    axes = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            names = mark.args[0] if isinstance(mark.args[0], tuple) else (mark.args[0],)
            axes.append([dict(zip(names, row if len(names) > 1 else (row,), strict=True)) for row in mark.args[1]])
    for rows in product(*axes):
        yield {name: value for row in rows for name, value in row.items()}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_is_noticed(fault: Fault, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    broken = fault.breaks(getattr(fault.target, fault.attribute))
    with patch.object(fault.target, fault.attribute, broken), patch("tests.runners.PATIENCE_S", 0.5):
        assert any(runs(fault.noticed_by, request, tmp_path)), f"{fault.noticed_by.__name__} passes although {fault.name}"


@pytest.mark.parametrize("test", dict.fromkeys(fault.noticed_by for fault in FAULTS), ids=lambda test: test.__name__)
def test_without_the_fault_it_passes_here(test: Callable[..., Any], request: pytest.FixtureRequest, tmp_path: Path) -> None:
    assert not any(runs(test, request, tmp_path))
