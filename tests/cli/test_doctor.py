"""`holdfast doctor`: what is wrong with a store, its queues and its workers, with evidence and a remedy."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from holdfast import ControlPlaneClient, Lock, Queue, Worker
from holdfast._sync.flows.working.registering import Registration
from holdfast._sync.handles.worker import STOPPED
from holdfast.cli.doctor.findings import clock, durability
from holdfast.stores import Guarantees
from holdfast.stores.sqlite.store import SqliteStore
from tests.cli.running import holdfast


@pytest.fixture
def url(tmp_path: Path) -> str:
    SqliteStore(tmp_path / "s.db").close()
    return f"sqlite:///{tmp_path}/s.db"


def findings(url: str, *more: str, code: int = 0) -> list[dict[str, Any]]:
    ran = holdfast("doctor", "--json", f"--url={url}", *more)
    assert ran.exit_code == code, ran.stderr
    found: list[dict[str, Any]] = json.decode(ran.stdout)
    return found


def test_a_store_without_faults_has_none(url: str) -> None:
    assert {finding["level"] for finding in findings(url, "--strict")} == {"ok"}
    assert "survives a loss of power" in holdfast("doctor", f"--url={url}").stdout


def test_a_queue_that_no_worker_serves_is_a_problem(url: str) -> None:
    with ControlPlaneClient(url) as client:
        Queue.create("mail", client=client).put(1)
    (problem,) = [finding for finding in findings(url, code=1) if finding["level"] == "problem"]
    assert (problem["about"], "no living worker serves it" in problem["finding"]) == ("queue mail", True)
    assert "holdfast worker" in problem["remedy"]


def test_workers_that_call_different_functions_for_one_queue_are_a_problem(url: str) -> None:
    def bill(value: Any) -> None: ...

    def ship(value: Any) -> None: ...

    with ControlPlaneClient(url) as client:
        Queue.create("mail", client=client).put(1)
        for function in (bill, ship):
            orders = Worker(function, "mail", client=client).orders
            Registration(client.store, orders, function.__name__).beat(STOPPED)
    (problem,) = [finding for finding in findings(url, code=1) if finding["level"] == "problem"]
    assert problem["about"] == "queue mail"
    assert "different functions" in problem["finding"]


def test_dead_letters_are_counted_by_their_error(url: str) -> None:
    with ControlPlaneClient(url) as client:
        mail = Queue.create("mail", client=client)
        for error in ("ValueError: a", "ValueError: b", "OSError: c"):
            mail.put(1)
            claim = mail.claim()
            assert claim is not None
            mail.bury(claim, error=error)
    (warning,) = [finding for finding in findings(url) if finding["level"] == "warning"]
    assert warning["finding"] == "3 dead letters; of the 3: ValueError 2, OSError 1"
    assert findings(url, "--strict", code=1)


@pytest.mark.parametrize(
    ("guarantees", "levels"),
    [
        (Guarantees("power", "hosts", "", "PostgreSQL 15", {"fsync": "on"}), ["ok"]),
        (Guarantees("process", "hosts", "", "PostgreSQL 15", {"fsync": "off"}), ["notice"]),
        (Guarantees("nothing", "hosts", "", "Redis 7", {"maxmemory-policy": "allkeys-lru"}), ["warning", "problem"]),
    ],
)
def test_the_settings_of_the_engine_decide_what_is_said_about_durability(guarantees: Guarantees, levels: list[str]) -> None:
    assert [finding.level for finding in durability(guarantees)] == levels


def test_clocks_that_differ_are_a_warning() -> None:
    assert (clock(10_000_000, 11_000_000).level, clock(10_000_000, 70_000_000).level) == ("ok", "warning")


def test_a_lock_that_is_held_for_long_is_named_with_its_holder(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ControlPlaneClient(url) as client:
        Lock("report", client=client, lease_s=600, holder="host-3").acquire()
    assert all("report" not in finding["about"] for finding in findings(url))
    monkeypatch.setattr("holdfast.cli.doctor.findings.OLD_S", -1.0)
    (warning,) = [finding for finding in findings(url) if finding["about"] == "lock report"]
    assert "is held by host-3" in warning["finding"]
    assert "holdfast lock break report" in warning["remedy"]
