"""Reading what localqueue itself wrote: a SQLite file or an LMDB folder, never changed, and refused where anything in it is damaged."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from holdfast.errors import MissingExtra, SchemaTooNew, StoreCorrupted, StoreError

TABLES = {"queue_messages": 3, "retry_records": 1, "idempotency_records": 1, "queue_results": 1}
"""The tables that show a file to be localqueue's, and the newest known version of a file with each."""

RECORD_VERSIONS = range(1, 6)


class LmdbMissing(MissingExtra, RuntimeError):  # noqa: N818 - what happened, as in `holdfast.errors`
    """The package that an LMDB folder needs is not installed; localqueue raises a RuntimeError."""


class LegacyContent(Struct):
    """Everything that a file or folder of localqueue's holds."""

    messages: list[dict[str, Any]] = []
    """In the order of their sequence within each queue."""
    leases: dict[tuple[str, str], int] = {}
    """By queue and worker."""
    seen: dict[tuple[str, str], float] = {}
    attempts: dict[str, dict[str, Any]] = {}
    ledger: dict[str, dict[str, Any]] = {}
    results: dict[str, Any] = {}


def read_legacy(path: Path) -> LegacyContent:
    """Read a file, or a folder; StoreError where it is none of localqueue's, StoreCorrupted where it is damaged."""
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise StoreError(f"there is no file {path}")
    try:
        return _read_file(path)
    except sqlite3.Error as error:
        raise StoreCorrupted(f"{path} cannot be read: restore a backup of it; nothing was imported ({error})") from error


def _read_file(path: Path) -> LegacyContent:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("begin")
        found = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
        kinds = [table for table in TABLES if table in found]
        if not kinds:
            raise StoreError(f"{path} was not written by localqueue: it has none of the tables {', '.join(TABLES)}")
        _check(connection, path, kinds)
        return _read_tables(connection, path, found)
    finally:
        connection.close()


def _check(connection: sqlite3.Connection, path: Path, kinds: list[str]) -> None:
    (problem,) = connection.execute("pragma quick_check(1)").fetchone()
    if problem != "ok":
        raise StoreCorrupted(f"{path} is damaged: restore a backup of it; nothing was imported ({problem})")
    (version,) = connection.execute("pragma user_version").fetchone()
    if version > max(TABLES[kind] for kind in kinds):
        raise SchemaTooNew(f"{path} has format {version}, which this Holdfast does not know: upgrade Holdfast; nothing was imported")


def _read_tables(connection: sqlite3.Connection, path: Path, found: set[str]) -> LegacyContent:
    def rows(table: str) -> Iterable[sqlite3.Row]:
        return connection.execute(f"select * from {table}") if table in found else []  # noqa: S608 - names of our own

    numbered = [(row["sequence"], _record(row["record_json"], path, row["id"], row["state"])) for row in rows("queue_messages")]
    return LegacyContent(
        messages=[message for _, message in sorted(numbered, key=lambda one: (one[1]["queue"], one[0]))],
        leases={(row["queue"], row["worker_id"]): row["leased_count"] for row in rows("queue_worker_stats")},
        seen={(row["queue"], row["worker_id"]): row["last_seen"] for row in rows("queue_worker_heartbeats")},
        attempts={row["key"]: _decoded(row["record_json"], path, row["key"]) for row in rows("retry_records")},
        ledger={row["key"]: _decoded(row["record_json"], path, row["key"]) for row in rows("idempotency_records")},
        results={row["key"]: _decoded(row["value_json"], path, row["key"]) for row in rows("queue_results")},
    )


def _read_folder(path: Path) -> LegacyContent:
    lmdb = import_lmdb()
    if not (path / "data.mdb").is_file():
        raise StoreError(f"{path} is not an LMDB folder: it has no data.mdb")
    try:
        with lmdb.open(str(path), readonly=True, create=False) as environment, environment.begin() as txn:
            if txn.get(b"about") is not None:
                raise StoreError(f"{path} is a store of Holdfast's own: `holdfast copy` moves it")
            return _sorted_out([(bytes(key).decode(), bytes(value).decode()) for key, value in txn.cursor()], path)
    except (lmdb.Error, UnicodeDecodeError) as error:
        raise StoreCorrupted(f"{path} cannot be read: restore a backup of it; nothing was imported ({error})") from error


def _sorted_out(pairs: list[tuple[str, str]], path: Path) -> LegacyContent:
    if not any(key.startswith("queue:") for key, _ in pairs):
        return _records_of(dict(pairs), path)
    content = LegacyContent()
    for key, text in pairs:
        _, queue, kind, *rest = key.split(":")
        match kind:
            case "message":
                content.messages.append(_record(text, path, rest[0], None))
            case "worker-stats":
                content.leases |= {(queue, worker): count for worker, count in _decoded(text, path, key).items()}
            case "worker-heartbeats":
                content.seen |= {(queue, worker): moment for worker, moment in _decoded(text, path, key).items()}
            case "ready" | "inflight" | "dead" | "dedupe" | "seq":
                pass  # All of it is in the messages, too.
            case _:
                raise StoreCorrupted(f"{path} has a key {key!r} that localqueue does not write; nothing was imported")
    content.messages.sort(key=lambda one: (one["queue"], str(one.get("index_key", ""))))
    return content


def _records_of(pairs: dict[str, str], path: Path) -> LegacyContent:
    """A folder of attempts, of a ledger or of results, told apart by what is in it."""
    decoded = {key: _decoded(text, path, key) for key, text in pairs.items()}
    if all(isinstance(one, dict) and one.keys() >= {"attempts", "exhausted"} for one in decoded.values()):
        return LegacyContent(attempts=decoded)
    if all(isinstance(one, dict) and one.keys() >= {"status", "first_seen_at"} for one in decoded.values()):
        return LegacyContent(ledger=decoded)
    return LegacyContent(results=decoded)


def _record(text: str, path: Path, message_id: str, state: str | None) -> dict[str, Any]:
    record = _decoded(text, path, message_id)
    if not isinstance(record, dict) or record.get("version") not in RECORD_VERSIONS:
        raise StoreCorrupted(f"message {message_id} in {path} is in no form that localqueue writes; nothing was imported")
    record.setdefault("state", state)
    problems = [*_problems(record)]
    if problems:
        raise StoreCorrupted(f"message {message_id} in {path} is damaged ({problems[0]}); nothing was imported")
    return record


def _problems(record: dict[str, Any]) -> Iterator[str]:
    for name, kinds in {"id": str, "queue": str, "created_at": (int, float), "available_at": (int, float), "attempts": int}.items():
        if not isinstance(record.get(name), kinds):  # type: ignore[arg-type] # a type, or several
            yield f"{name} is {record.get(name)!r}"
    if "value" not in record:
        yield "it has no value"
    if record.get("state") not in ("ready", "inflight", "dead"):
        yield f"state is {record.get('state')!r}"


def _decoded(text: str, path: Path, key: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise StoreCorrupted(f"{key} in {path} is not JSON; nothing was imported ({error})") from error


def refuse_legacy(path: Path) -> None:
    """Refuse a file that localqueue itself wrote: it has no tokens, no clock and no events."""
    if (path.is_file() and _is_legacy_file(path)) or (path.is_dir() and _is_legacy_folder(path)):
        raise StoreError(
            f"{path} was written by localqueue: copy what is in it with `holdfast import localqueue {path} --to URL`, "
            "and open that, or choose another path; the file was not changed"
        )


def _is_legacy_file(path: Path) -> bool:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        names = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    except sqlite3.Error:
        return False  # No SQLite file, or a damaged one: opening it says what is wrong.
    finally:
        connection.close()
    return "holdfast_meta" not in names and any(table in names for table in TABLES)


def _is_legacy_folder(path: Path) -> bool:
    if not (path / "data.mdb").is_file():
        return False
    lmdb = import_lmdb()
    try:
        environment = lmdb.open(str(path), readonly=True, lock=False, create=False)
    except lmdb.Error:
        return False  # Open in this process, so ours; or damaged, which opening it says.
    with environment, environment.begin() as txn:
        return bool(txn.stat()["entries"]) and txn.get(b"about") is None


def import_lmdb() -> Any:
    """The package that reads LMDB folders."""
    try:
        import lmdb  # noqa: PLC0415 - the extra is needed only here
    except ModuleNotFoundError as error:
        raise LmdbMissing("an LMDB store needs the package 'lmdb': pip install 'holdfast[lmdb]'") from error
    return lmdb
