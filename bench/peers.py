"""Other leased queues on a SQLite file, by their documented calls; those not installed are left out and named."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.measure import Rates, rates_of

BODY = {"to": "someone@example.com", "subject": "hello", "tries": 3}
TEXT = '{"to": "someone@example.com", "subject": "hello", "tries": 3}'

_numbers = count()


class Verbs(NamedTuple):
    """What a peer can do: put a message; claim one and acknowledge it; close its file."""

    put: Callable[[], object]
    cycle: Callable[[], object]
    close: Callable[[], object] = bool


def open_localqueue(folder: Path) -> Verbs:
    localqueue = import_module("localqueue")
    store = localqueue.SQLiteQueueStore(folder / "queue.sqlite3")
    queue = localqueue.PersistentQueue("jobs", store=store)
    return Verbs(lambda: queue.put(BODY), lambda: queue.ack(queue.get_message(block=False)), store.close)


def open_persist_queue(folder: Path) -> Verbs:
    queue = import_module("persistqueue").SQLiteAckQueue(str(folder), multithreading=True)
    return Verbs(lambda: queue.put(BODY), lambda: queue.ack(queue.get(block=False)), queue.close)


def open_litequeue(folder: Path) -> Verbs:
    queue = import_module("litequeue").LiteQueue(folder / "queue.db")
    return Verbs(lambda: queue.put(TEXT), lambda: queue.done(queue.pop().message_id), queue.close)


def open_honker(folder: Path) -> Verbs:
    queue = import_module("honker").open(str(folder / "queue.db")).queue("jobs")
    return Verbs(lambda: queue.enqueue(BODY), lambda: queue.claim_one("bench").ack())


PEERS: Mapping[str, tuple[str, Callable[[Path], Verbs]]] = {
    "localqueue": ("localqueue", open_localqueue),
    "persist-queue (always FULL)": ("persistqueue", open_persist_queue),
    "litequeue": ("litequeue", open_litequeue),
    "honker": ("honker", open_honker),
}
"""The package to import, and how to open it, by the name shown."""


def installed() -> list[str]:
    return [name for name, (package, _) in PEERS.items() if find_spec(package)]


def missing() -> list[str]:
    """The peers left out, leasedkeyq, which has no file, among them."""
    packages = {name: package for name, (package, _) in PEERS.items()} | {"leasedkeyq": "leasedkeyq"}
    return [name.partition(" ")[0] for name, package in packages.items() if not find_spec(package)]


def singles(name: str, folder: Path, puts: int, cycles: int) -> Rates:
    """Rates on a new file: some peers get slower with every message that they have done."""
    with opened(name, folder) as verbs:
        return rates_of("put", puts, verbs.put) | rates_of("claim+ack", cycles, verbs.cycle)


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Verbs]:
    with TemporaryDirectory(dir=folder, prefix=f"peer{next(_numbers)}-") as place:
        verbs = PEERS[name][1](Path(place))
        try:
            yield verbs
        finally:
            verbs.close()
