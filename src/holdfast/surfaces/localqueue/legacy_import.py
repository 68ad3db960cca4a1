"""From a file that localqueue wrote into a store: messages with their ids, attempts and errors, and every record."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from msgspec import Raw, Struct, json

from holdfast._sync.flows.importing import import_pages
from holdfast.client import ControlPlaneClient
from holdfast.clock import wall_us
from holdfast.codec import JSON, encode_key
from holdfast.commands.surveying import Surveyed
from holdfast.errors import Refused, StoreCorrupted
from holdfast.records import HISTORY, Ending, Entry, Message, State
from holdfast.records.policies import Settings
from holdfast.surfaces.localqueue.attempts.stores import RetryRecord, URLAttemptStore
from holdfast.surfaces.localqueue.engine_backend import WORKERS
from holdfast.surfaces.localqueue.idempotency import IdempotencyRecord, URLIdempotencyStore
from holdfast.surfaces.localqueue.legacy_files import LegacyContent, read_legacy
from holdfast.surfaces.localqueue.record_location import age_line, fitting, microseconds
from holdfast.surfaces.localqueue.results import URLResultStore
from holdfast.views.copy_pages import PAGE, Page, Place, in_portions

R = TypeVar("R", Message, Entry)

HOW: dict[str, Any] = {"released": "released", "lease_expired": "expired", "dead_lettered": "buried"}


class Imported(Struct, frozen=True):
    """How much was put into the store."""

    messages: int
    entries: int
    source: str
    target: str


def import_localqueue(path: str | Path, client: ControlPlaneClient, *, merge: bool = False) -> Imported:
    """Put everything that a file or folder of localqueue's holds into a store, which must be empty unless `merge`.

    The file is only read. Refuses while a lease in it lives, where anything in it is damaged, and where the store has something of it
    already. Interrupted, it goes on where it was when it is called again.
    """
    source = Path(path).absolute()
    _refuse_itself(source, client.url)
    numbers = Numbers()
    pages = _pages(read_legacy(source), source, wall_us(), numbers)
    digest = sha256(json.encode([(one.messages, one.entries) for one in pages])).hexdigest()[:16]
    store = client.store
    # Asked for only now, because from this moment and that of the store the difference of the clocks is taken.
    survey = Surveyed(wall_us(), numbers.latest, numbers.next_n)
    copying = import_pages(store, f"localqueue {source}@{digest}", survey, pages, merge=merge)
    return Imported(copying.messages, copying.entries, str(source), client.url)


def _refuse_itself(source: Path, url: str) -> None:
    target = urlsplit(url)
    if target.scheme in ("sqlite", "lmdb") and Path(unquote(target.path.removeprefix("/"))).resolve() == source.resolve():
        raise ValueError(f"{source} cannot be imported into itself: name another store")


class Numbers:
    """Gives tokens, revisions and places in line, in the order in which they are asked for."""

    def __init__(self) -> None:
        self._tokens = count(1)
        self._ns = count(1)
        self.latest: int = 0
        self.next_n: int = 1

    def token(self) -> int:
        self.latest = next(self._tokens)
        return self.latest

    def n(self) -> int:
        self.next_n = next(self._ns) + 1
        return self.next_n - 1


def _pages(content: LegacyContent, source: Path, now: int, numbers: Numbers) -> list[Page]:
    queues: dict[str, list[Message]] = {}
    for record in content.messages:
        queues.setdefault(record["queue"], []).append(_message(record, source, now, numbers))
    dicts = {name: entries for name, entries in _dicts(content, source, numbers).items() if entries}
    settings = [Settings("queue", name, created_at=now) for name in queues] + [Settings("dict", name, created_at=now) for name in dicts]
    pages = [Page(Place("settings", after=(start,)), settings=settings[start : start + PAGE]) for start in range(0, len(settings), PAGE)]
    for name, messages in queues.items():
        for state in ("ready", "dead"):
            pages += _message_pages(name, state, [message for message in messages if message.state == state])
    for name, entries in dicts.items():
        pages += [Page(Place("entries", name, after=(portion[-1].key,)), entries=portion) for portion in _portions(entries)]
    return pages


def _message_pages(queue: str, state: State, messages: list[Message]) -> list[Page]:
    return [Page(Place("messages", queue, state, (portion[-1].n,)), messages=portion) for portion in _portions(messages)]


def _portions(records: list[R]) -> Iterator[Sequence[R]]:
    for start in range(0, len(records), PAGE):
        yield from in_portions(records[start : start + PAGE])


def _message(record: dict[str, Any], source: Path, now: int, numbers: Numbers) -> Message:
    if record["state"] == "inflight" and microseconds(record.get("leased_until") or 0) > now:
        raise Refused(
            f"message {record['id']} of queue {record['queue']!r} in {source} is leased; nothing was imported: "
            "stop the workers of localqueue, let their leases end, and import again"
        )
    history = _history(record, numbers)
    is_expired = record["state"] == "inflight"
    until = microseconds(record.get("leased_until") or 0)
    error = record.get("last_error")
    dead_at = record.get("failed_at") or (history[-1].until / 1_000_000 if history else record["created_at"])
    return Message(
        queue=record["queue"],
        id=record["id"],
        value=_encoded(record["value"], record["id"], source),
        n=numbers.n(),
        key=None if record.get("dedupe_key") is None else encode_key(record["dedupe_key"]),
        priority=record.get("priority") or 0,
        position=until if is_expired else microseconds(record["available_at"]),
        state="dead" if record["state"] == "dead" else "ready",
        attempts=record["attempts"],
        failures=int(is_expired),
        created_at=microseconds(record["created_at"]),
        dead_at=microseconds(dead_at) if record["state"] == "dead" else None,
        last_error=None if error is None else json.encode(error).decode(),
        endings=len(history),
        history=tuple(history[-HISTORY:]),
    )


def _history(record: dict[str, Any], numbers: Numbers) -> list[Ending]:
    """The leases that ended, each with its beginning; one without a recorded end expired."""
    endings: list[Ending] = []
    begun: dict[str, Any] | None = None
    for event in record.get("attempt_history") or []:
        if event["type"] == "leased":
            begun = event
            continue
        leased = begun or event
        error = None if event.get("last_error") is None else json.encode(event["last_error"]).decode()
        how, since, until = HOW[event["type"]], microseconds(leased["at"]), microseconds(event["at"])
        endings.append(Ending(leased.get("leased_by") or "", numbers.token(), since, until, how, error))
        begun = None
    if begun is not None:
        until = microseconds(record.get("leased_until") or begun["at"])
        endings.append(Ending(begun.get("leased_by") or "", numbers.token(), microseconds(begun["at"]), until, "expired"))
    return endings


def _dicts(content: LegacyContent, source: Path, numbers: Numbers) -> dict[str, list[Entry]]:
    made: dict[str, dict[str, Any]] = {WORKERS: {}}
    for (queue, worker), leases in content.leases.items():
        made[WORKERS][encode_key((queue, "leases", worker))] = leases
    for (queue, worker), moment in content.seen.items():
        made[WORKERS][encode_key((queue, "seen", worker))] = moment
    attempts = {key: URLAttemptStore.encoded(RetryRecord(**record)) for key, record in content.attempts.items()}
    ledger = {_scoped(key, record): URLIdempotencyStore.encoded(IdempotencyRecord(**record)) for key, record in content.ledger.items()}
    for name, records in ((URLAttemptStore.dict_name, attempts), (URLIdempotencyStore.dict_name, ledger)):
        made[name] = {encode_key(fitting(key)): value for key, (value, _) in records.items()}
        made[f"{name}-ages"] = {encode_key(age_line(at, key)): True for key, (_, at) in records.items() if at is not None}
    made[URLResultStore.dict_name] = {encode_key(fitting(key)): value for key, value in content.results.items()}
    return {
        name: [Entry(name, key, _encoded(value, key, source), numbers.token()) for key, value in entries.items()]
        for name, entries in made.items()
    }


def _scoped(key: str, record: dict[str, Any]) -> str:
    """The key under which a ledger is kept here, where queues are told apart; one that names no queue stays as it was."""
    queue = (record.get("metadata") or {}).get("queue")
    return key if queue is None else f"dedupe:{queue}:{key}"


def _encoded(value: Any, name: str, source: Path) -> Raw:
    try:
        return JSON.encode(value)
    except TypeError as error:
        raise StoreCorrupted(f"{name} in {source} holds what JSON cannot: {error}; nothing was imported") from error
