"""Files that localqueue wrote, in the form of its version 0.5, come into a store with everything in them, or are refused."""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from holdfast.client import ControlPlaneClient
from holdfast.errors import HoldfastError, Refused, SchemaTooNew, StoreCorrupted, StoreError
from holdfast.surfaces.localqueue import (
    PersistentQueue,
    PriorityOrdering,
    URLIdempotencyStore,
    URLQueueStore,
    URLResultStore,
    persistent_worker,
)
from holdfast.surfaces.localqueue.legacy_import import import_localqueue
from holdfast.surfaces.localqueue.retry import URLAttemptStore

BEGAN = time.time() - 1_000
ERROR = {"type": "ValueError", "module": "builtins", "message": "boom"}


def record(**changes: Any) -> dict[str, Any]:
    """A message as localqueue keeps it."""
    plain = {
        "version": 5,
        "id": "m1",
        "value": {"a": 1},
        "queue": "jobs",
        "attempts": 0,
        "created_at": BEGAN,
        "available_at": BEGAN,
        "leased_until": None,
        "leased_by": None,
        "last_error": None,
        "failed_at": None,
        "dedupe_key": None,
        "priority": 0,
        "attempt_history": [],
        "state": "ready",
        "index_key": "queue:jobs:ready:1:1:m1",
    }
    return plain | changes


RECORDS = [
    record(id="m1", dedupe_key="k"),
    record(id="m2", value="later", available_at=time.time() + 100_000),
    record(id="m3", value="urgent", priority=3),
    record(
        id="m4",
        value="dead",
        state="dead",
        attempts=2,
        last_error=ERROR,
        failed_at=BEGAN + 5,
        attempt_history=[
            {"type": "leased", "at": BEGAN + 1, "attempt": 1, "leased_by": "w1"},
            {"type": "lease_expired", "at": BEGAN + 2, "attempt": 1},
            {"type": "leased", "at": BEGAN + 3, "attempt": 2},
            {"type": "dead_lettered", "at": BEGAN + 5, "attempt": 2, "last_error": ERROR},
        ],
    ),
    record(
        id="m5",
        value="abandoned",
        state="inflight",
        attempts=1,
        leased_until=BEGAN + 30,
        leased_by="w1",
        attempt_history=[{"type": "leased", "at": BEGAN, "attempt": 1, "leased_by": "w1"}],
    ),
    record(id="m6", queue="other", value=None),
]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient(f"sqlite:///{tmp_path}/target") as client:
        yield client


def write_file(path: Path, records: list[dict[str, Any]], version: int = 3) -> Path:
    with sqlite3.connect(path) as connection:
        connection.executescript(f"""
            pragma user_version = {version};
            create table queue_messages (queue text not null, id text not null, record_json text not null, state text not null,
              created_at real, available_at real not null, leased_until real, leased_by text, last_leased_at real, failed_at real,
              priority integer not null default 0, sequence integer not null, primary key (queue, id));
            create table queue_worker_stats (queue text, worker_id text, leased_count integer);
            create table queue_worker_heartbeats (queue text, worker_id text, last_seen real);
        """)
        connection.execute("insert into queue_worker_stats values ('jobs', 'w1', 7)")
        connection.execute("insert into queue_worker_heartbeats values ('jobs', 'w1', ?)", (BEGAN,))
        for number, one in enumerate(records):
            row = (one["queue"], one["id"], json.dumps(one), one.get("state", "ready"), one.get("available_at", 0), number)
            connection.execute(
                "insert into queue_messages (queue, id, record_json, state, available_at, sequence) values (?, ?, ?, ?, ?, ?)", row
            )
    connection.close()
    return path


def write_folder(path: Path, pairs: dict[str, Any]) -> Path:
    with lmdb.open(str(path)) as environment, environment.begin(write=True) as txn:
        for key, value in pairs.items():
            txn.put(key.encode(), json.dumps(value).encode())
    return path


def folder_of_messages(path: Path, records: list[dict[str, Any]]) -> Path:
    messages = {
        f"queue:{one['queue']}:message:{one['id']}": one | {"index_key": f"{one['queue']}:{number:03d}"}
        for number, one in enumerate(records)
    }
    others = {"queue:jobs:seq": 6, "queue:jobs:dedupe:6b": "m1", "queue:jobs:worker-stats": {"w1": 7}}
    return write_folder(path, {**messages, **others, "queue:jobs:worker-heartbeats": {"w1": BEGAN}})


@pytest.mark.parametrize("write", [write_file, folder_of_messages])
def test_messages_come_with_all_they_had(write: Callable[..., Path], tmp_path: Path, target: ControlPlaneClient) -> None:
    path = write(tmp_path / "old", RECORDS)
    before = sorted((file.name, file.read_bytes()) for file in ([path] if path.is_file() else [path / "data.mdb"]))

    imported = import_localqueue(path, target)

    assert (imported.messages, imported.entries) == (6, 2)
    jobs = PersistentQueue[Any]("jobs", store=URLQueueStore(target), ordering_policy=PriorityOrdering())
    stats = jobs.stats()
    assert (stats.ready, stats.delayed, stats.inflight, stats.dead) == (3, 1, 0, 1)
    assert (stats.leases_by_worker_id, stats.last_seen_by_worker_id) == ({"w1": 7}, {"w1": BEGAN})
    (dead,) = jobs.dead_letters()
    assert (dead.id, dead.attempts, dead.last_error) == ("m4", 2, ERROR)
    assert dead.failed_at == pytest.approx(BEGAN + 5, abs=1)
    assert [one["type"] for one in dead.attempt_history] == ["leased", "lease_expired", "leased", "dead_lettered"]
    assert [(one := jobs.get_message()).id, jobs.get_message().id] == ["m3", "m1"]
    again = jobs.get_message()
    assert (again.id, again.attempts, again.attempt_history[0]["leased_by"]) == ("m5", 2, "w1")
    assert one.created_at == pytest.approx(BEGAN, abs=1)
    assert jobs.put("new", dedupe_key="k").id == "m1"
    other = PersistentQueue[Any]("other", store=URLQueueStore(target)).get_message()
    assert (other.id, other.value) == ("m6", None)
    assert sorted((file.name, file.read_bytes()) for file in ([path] if path.is_file() else [path / "data.mdb"])) == before


def test_records_of_every_kind_come_too(tmp_path: Path, target: ControlPlaneClient) -> None:
    attempts = {"m1": {"attempts": 2, "first_attempt_at": 1.0, "exhausted": True}}
    succeeded = {"status": "succeeded", "first_seen_at": 1.0, "completed_at": 5.0, "result_key": None, "metadata": {"queue": "jobs"}}
    ledger = {"k": succeeded, "unscoped": succeeded | {"metadata": {}}}
    results = {"dedupe:jobs:k": {"x": 1}}
    for name, records in (("attempts", attempts), ("ledger", ledger), ("results", results)):
        import_localqueue(write_folder(tmp_path / name, records), target, merge=True)

    found = URLAttemptStore(target).load("m1")
    assert found is not None
    assert (found.attempts, found.exhausted) == (2, True)
    known = URLIdempotencyStore(target)
    assert [known.load(key) is not None for key in ("dedupe:jobs:k", "unscoped", "k")] == [True, True, False]
    assert known.prune_completed(older_than=0.0, now=10.0) == 2
    assert URLResultStore(target).load("dedupe:jobs:k") == {"x": 1}


@pytest.mark.parametrize(
    ("table", "column", "text"),
    [
        ("retry_records", "record_json", '{"attempts": 2, "first_attempt_at": 1.0, "exhausted": false}'),
        ("idempotency_records", "record_json", '{"status": "pending", "first_seen_at": 1.0, "completed_at": null}'),
        ("queue_results", "value_json", "[1]"),
    ],
)
def test_a_file_of_each_kind_is_known(table: str, column: str, text: str, tmp_path: Path, target: ControlPlaneClient) -> None:
    with sqlite3.connect(tmp_path / "old") as connection:
        connection.execute(f"create table {table} (key text primary key, {column} text)")
        connection.execute(f"insert into {table} values ('k', ?)", (text,))  # noqa: S608 - of this test
    connection.close()
    assert import_localqueue(tmp_path / "old", target).entries == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("damaged", "problem"),
        [
            (record(version=9), "no form"),
            (record(state="lost"), "state is 'lost'"),
            (record(created_at=None), "created_at is None"),
            ({key: value for key, value in record().items() if key != "value"}, "no value"),
            (record(value=float("nan")), "JSON cannot"),
        ],
    )
    def test_a_damaged_message_refuses_everything(
        self, damaged: dict[str, Any], problem: str, tmp_path: Path, target: ControlPlaneClient
    ) -> None:
        path = write_file(tmp_path / "old", [record(id="fine"), damaged])
        with pytest.raises(StoreCorrupted, match=problem):
            import_localqueue(path, target)
        assert PersistentQueue[Any]("jobs", store=URLQueueStore(target)).stats().total == 0

    def test_text_that_is_not_json(self, tmp_path: Path, target: ControlPlaneClient) -> None:
        path = write_file(tmp_path / "old", [record()])
        with sqlite3.connect(path) as connection:
            connection.execute("update queue_messages set record_json = '{'")
        connection.close()
        with pytest.raises(StoreCorrupted, match="not JSON"):
            import_localqueue(path, target)

    def test_a_file_whose_pages_are_damaged(self, tmp_path: Path, target: ControlPlaneClient) -> None:
        path = write_file(tmp_path / "old", [record(id=f"m{number}", value="x" * 500) for number in range(200)])
        content = bytearray(path.read_bytes())
        content[len(content) // 2 : len(content) // 2 + 8_192] = b"\xff" * 8_192
        path.write_bytes(content)
        with pytest.raises(StoreCorrupted, match="restore a backup"):
            import_localqueue(path, target)

    def test_a_newer_format(self, tmp_path: Path, target: ControlPlaneClient) -> None:
        with pytest.raises(SchemaTooNew, match="format 4"):
            import_localqueue(write_file(tmp_path / "old", [], version=4), target)

    def test_a_message_that_is_leased(self, tmp_path: Path, target: ControlPlaneClient) -> None:
        path = write_file(tmp_path / "old", [record(state="inflight", leased_until=time.time() + 600)])
        with pytest.raises(Refused, match="stop the workers"):
            import_localqueue(path, target)

    def test_what_localqueue_did_not_write(self, tmp_path: Path, target: ControlPlaneClient) -> None:
        (tmp_path / "text").write_text("no database" * 100)
        sqlite3.connect(tmp_path / "other").execute("create table mine (x)").connection.close()
        (tmp_path / "empty").mkdir()
        for name in ("text", "other", "empty", "missing"):
            with pytest.raises(StoreError):
                import_localqueue(tmp_path / name, target)
        with pytest.raises(StoreCorrupted, match="does not write"):
            import_localqueue(write_folder(tmp_path / "odd", {"queue:jobs:strange": 1}), target)

    def test_a_target_that_is_not_empty_or_has_the_same(self, tmp_path: Path, target: ControlPlaneClient) -> None:
        path = write_file(tmp_path / "old", [record()])
        PersistentQueue[Any]("jobs", store=URLQueueStore(target)).put("there")
        with pytest.raises(HoldfastError, match="not empty"):
            import_localqueue(path, target)
        assert import_localqueue(path, target, merge=True).messages == 1
        with pytest.raises(HoldfastError, match="in the source and in the target"):
            import_localqueue(path, target, merge=True)

    def test_a_file_is_not_imported_into_itself(self, tmp_path: Path) -> None:
        path = write_file(tmp_path / "old", [record()])
        before = path.read_bytes()
        with ControlPlaneClient(f"sqlite:///{path}") as client, pytest.raises(ValueError, match="itself"):
            import_localqueue(path, client)
        assert path.read_bytes() == before


def test_an_interrupted_import_goes_on(tmp_path: Path, target: ControlPlaneClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast._sync.flows import copying, importing

    path = write_file(tmp_path / "old", RECORDS)
    copy_page, left = copying.copy_page, [3]

    def interrupted(*args: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return copy_page(*args)

    monkeypatch.setattr(importing, "copy_page", interrupted)
    with pytest.raises(KeyboardInterrupt):
        import_localqueue(path, target)
    monkeypatch.undo()
    assert import_localqueue(path, target).messages == 6
    assert PersistentQueue[Any]("jobs", store=URLQueueStore(target)).stats().total == 5


def test_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from holdfast.cli import main; main()", "import", "localqueue", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    path = write_file(tmp_path / "old", RECORDS)
    done = run(path, "--to", f"sqlite:///{tmp_path}/new", "--json")
    assert json.loads(done.stdout) == {"messages": 6, "entries": 2, "source": str(path), "target": f"sqlite:///{tmp_path}/new"}
    again = run(path, "--to", f"sqlite:///{tmp_path}/new")
    assert (again.returncode, again.stderr[:27]) == (1, "holdfast import localqueue:")
    merged = run(write_folder(tmp_path / "results", {"k": 1}), "--to", f"sqlite:///{tmp_path}/new", "--merge")
    assert merged.stdout.startswith("Imported 0 messages and 1 record from")


WRITTEN = json.loads((Path(__file__).parent / "written_by_localqueue.json").read_text())
"""What localqueue 0.5.0 itself wrote: statements that make its SQLite files, and what is in its LMDB folders."""


def written(kind: str, name: str, folder: Path) -> Path:
    path = folder / name
    if kind == "sqlite":
        with sqlite3.connect(path) as connection:
            connection.executescript("\n".join(WRITTEN[kind][name]))
        connection.close()
        return path
    with lmdb.open(str(path)) as environment, environment.begin(write=True) as txn:
        for key, value in WRITTEN[kind][name].items():
            txn.put(key.encode(), value.encode())
    return path


@pytest.mark.parametrize("kind", ["sqlite", "lmdb"])
def test_what_localqueue_itself_wrote_comes_whole(kind: str, tmp_path: Path, target: ControlPlaneClient) -> None:
    for name in ("queue", "retries", "ledger", "results"):
        import_localqueue(written(kind, name, tmp_path), target, merge=True)

    jobs, orders = (PersistentQueue[Any](name, store=URLQueueStore(target)) for name in ("jobs", "orders"))
    stats = jobs.stats()
    assert (stats.ready, stats.delayed, stats.inflight, stats.dead) == (2, 1, 0, 1)
    assert (stats.leases_by_worker_id, list(stats.last_seen_by_worker_id)) == ({"w1": 2, "w2": 2}, ["w1"])
    (urgent,) = jobs.dead_letters()
    assert (urgent.value, urgent.priority, urgent.last_error) == (
        "urgent",
        7,
        {"type": "RuntimeError", "module": "builtins", "message": "dead"},
    )
    first = jobs.get_message()
    assert (first.value, first.attempts) == ({"n": "ready", "list": [1, 2.5, None, "é"]}, 3)
    assert [one["type"] for one in first.attempt_history] == ["leased", "released", "leased", "lease_expired", "leased"]
    assert jobs.put("again", dedupe_key="k1").value == "keyed", "its key is known"

    ledger, results = URLIdempotencyStore(target), URLResultStore(target)
    assert [(ledger.load(f"dedupe:orders:{key}") or urgent).status for key in ("o1", "o2")] == ["succeeded", "failed"]  # type: ignore[union-attr] # there
    assert results.load("dedupe:orders:o1") == {"done": {"order": 1}}
    assert [one.value for one in orders.dead_letters()] == [{"order": 2}]


@pytest.mark.parametrize("kind", ["sqlite", "lmdb"])
def test_an_imported_dead_letter_that_is_requeued_is_handled(kind: str, tmp_path: Path, target: ControlPlaneClient) -> None:
    """localqueue kept that its tries were used up, and buried it again without calling anybody."""
    for name in ("queue", "retries"):
        import_localqueue(written(kind, name, tmp_path), target, merge=True)
    orders = PersistentQueue[Any]("orders", store=URLQueueStore(target))
    (dead,) = orders.dead_letters()
    assert (record := URLAttemptStore(target).load(dead.id)) is not None
    assert record.exhausted
    orders.requeue_dead(dead)
    assert persistent_worker(orders, max_tries=2)(lambda order: order["order"])() == 2
