"""Write what a release keeps in each store into tests/stored/, for the tests of all later ones.

    git archive RELEASE | tar x -C /tmp/release
    PYTHONPATH=/tmp/release/src python tools/stored_forms.py tests/stored/RELEASE

So everything here must also work with the code of old releases; what 0.1.0 does not know is in `stored_newer`. Redis is kept as the
commands that make its keys, since DUMP's payloads load only on servers that are as new; PostgreSQL as the statements of pg_dump --inserts.
"""

import base64
import lzma
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Raw, json

from holdfast import Once, worker
from holdfast.codec import encode_key
from holdfast.commands import (
    Acquire,
    Browse,
    Change,
    Changes,
    Claim,
    Command,
    Configure,
    Extend,
    Fences,
    Item,
    Look,
    Names,
    Put,
    Read,
    Release,
    Settle,
    Together,
    Write,
    encode_command,
)
from holdfast.commands.leases import LeaseName
from holdfast.connect import connect
from holdfast.records import State
from holdfast.server.audit import Actor, audit_page, read_audit
from holdfast.stores import Store
from holdfast.surfaces.localqueue import PersistentQueue
from holdfast.surfaces.localqueue.idempotency import IdempotencyRecord, URLIdempotencyStore
from holdfast.surfaces.localqueue.results import URLResultStore
from holdfast.testing.servers import postgres, redis

try:
    from holdfast.server.auth.tokens import create_token
except ImportError:
    from holdfast.server.tokens import create_token  # type: ignore[import-not-found,no-redef]  # As in 0.1.0.

sys.path.insert(0, str(Path(__file__).parents[1]))

try:
    from tools import stored_newer as newer
except ImportError:
    newer = None  # type: ignore[assignment]  # The code of a release that knows none of it.

LONG_S = 90 * 365 * 86_400.0
"""What is held or held back when it is written still is whenever the tests read it."""

MOMENT_S = 0.001
"""And this is over by then."""

DAY_MS = 86_400_000

STATES: tuple[State, ...] = ("ready", "leased", "dead", "buffered")
LEASES = [(None, encode_key(("lock", "deploy"))), (None, encode_key(("election", "leader"))), ("settings", "owner")]
LARGE = "large " * 5_000


def raw(value: object) -> Raw:
    """A value as commands carry it."""
    return Raw(json.encode(value))


class Writing:
    """Executes commands and keeps them, with their answers, as the HTTP protocol sends them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.wire: list[tuple[str, Any]] = []

    def __call__(self, command: Command[Any]) -> Any:
        answer = self.store.execute(command)
        self.wire.append((encode_command(command).decode(), json.decode(json.encode(answer))))
        return answer


def write_queues(ask: Writing) -> dict[str, Any]:
    """Messages in every state, with everything that a message may have."""
    plain = [Item(name, raw({"of": name})) for name in ("first", "second", "third", "fourth", "fifth")]
    ask(Put("jobs", plain))
    held, failed, buried, lapsed = ask(Claim("jobs", "worker-1", LONG_S, 4)).messages
    ask(Settle([failed.receipt], "ready", error="ValueError: no", counts=True, return_to="place"))
    ask(Settle([buried.receipt], "dead", error="KeyError: 'x'", counts=True))
    ask(Extend([held.receipt], LONG_S))
    ask(Extend([lapsed.receipt], MOMENT_S))
    ask(
        Put(
            "jobs",
            [
                Item("urgent", raw([1, 2.5, None, "ä\U0001f600"]), priority=7),
                Item("later", raw("later"), delay_s=LONG_S),
                Item("budgeted", raw("b"), max_attempts=3, dead_letter="graves", metadata=raw({"trace": "00-ab", "n": 1})),
                Item("soon", raw("s"), start_within_s=LONG_S),
                Item("large", raw(LARGE)),
                Item("keyed", raw(1), key="k"),
                Item("low", raw("low"), priority=-3),
            ],
        )
    )
    ask(Put("keyed", [Item("living", raw(1), key=encode_key(("order", 1)))]))
    living = ask(Claim("keyed", "worker-2", LONG_S)).messages[0]
    ask(Put("keyed", [Item("copy", raw(2), key=encode_key(("order", 1)))]))
    ask(Put("spent", [Item("spent", raw("spent"), max_attempts=1, dead_letter="graves")]))
    ask(Settle([ask(Claim("spent", "worker-3", LONG_S)).messages[0].receipt], "ready", error="gone wrong", counts=True))
    ask(Configure("queue", "bounded", maxsize=2))
    ask(Put("bounded", [Item("one", raw(1))]))
    ask(Configure("queue", "quiet", paused=True))
    ask(Put("quiet", [Item("hush", raw(1))]))
    return {"held": held.receipt, "living": living.receipt, "lapsed": lapsed.receipt}


def write_dicts(ask: Writing) -> dict[str, Any]:
    """Entries, fences, leases on keys and on names."""
    leases = [ask(Acquire(of_dict, key, "holder-1", f"lease-{number}", LONG_S)).lease for number, (of_dict, key) in enumerate(LEASES)]
    given_up = ask(Acquire(None, "given up", "holder-2", "lease-up", LONG_S)).lease
    ask(Release([LeaseName(None, "given up", "lease-up")]))
    fence = leases[0].token
    changes = [
        Change("plain", value=raw({"a": 1})),
        Change("null", value=raw(None)),
        Change("large", value=raw(LARGE)),
        Change("ä", value=raw("ü")),
        Change("kept", value=raw("kept"), ttl_s=LONG_S),
        Change("over", value=raw("over"), ttl_s=MOMENT_S),
        Change("fenced", value=raw("fenced"), fence=fence),
        Change("gone", value=raw("gone"), fence=fence),
        Change("number", do="increment", by=41),
        Change("owner", value=raw("mine"), lease=leases[2].lease_id),
    ]
    ask(Write("settings", changes))
    ask(Write("settings", [Change("gone", do="delete", fence=fence), Change("number", do="increment", by=1)]))
    ask(Together([Put("steps", [Item("step", raw(1))]), Write("steps", [Change("done", value=raw("yes"))])], id="command-1"))
    return {"leases": leases, "given_up": given_up.token, "fence": fence}


def write_handles(url: str, store: Store) -> dict[str, Any]:
    """What the handles, the server and the surfaces keep in queues and dicts."""
    once = Once("payments", base_url=url)
    receipt = once.run(("order", 1), lambda: {"receipt": 7})

    @worker("adds", base_url=url, results=True, keep_result_s=LONG_S)
    def add(numbers: list[int]) -> int:
        return sum(numbers)

    job = add.put([1, 2, 3])
    add.run(until_empty=True)
    token, text = create_token(store, "reader", ["queue:jobs:read"], ["default"], None, by=Actor("tests", "here"))
    local: PersistentQueue[Any] = PersistentQueue("local", store=url)
    local.put({"image": 1}, dedupe_key="image-1")
    local.put({"image": 2}, delay=LONG_S)
    URLIdempotencyStore(url).save("done-1", IdempotencyRecord(status="succeeded", first_seen_at=1.0, completed_at=2.0, result_key="r-1"))
    URLResultStore(url).save("r-1", {"made": "thumbnail"})
    return {"receipt": receipt, "job": job.id, "token_id": token.id, "token": text}


def snapshot(store: Store) -> dict[str, Any]:
    """All that can be read, as plain values."""
    queues = {each.name: each for each in store.execute(Names("queue")).settings}
    dicts = {each.name: each for each in store.execute(Names("dict")).settings}
    topics = [*(f"queue:{name}" for name in queues), *(f"dict:{name}" for name in dicts)]
    found = {
        "queues": queues,
        "messages": {name: {state: store.execute(Browse(name, state=state)).messages for state in STATES} for name in queues},
        "dicts": dicts,
        "entries": {name: store.execute(Read(name)).entries for name in dicts},
        "fences": store.execute(Fences()),
        "leases": [held.lease if held else None for of_dict, key in LEASES for held in store.execute(Look(of_dict, [key])).leases],
        "events": {topic: store.execute(Changes(topic)).events for topic in topics},
        "latest": store.execute(Changes("queue:jobs")).latest,
        "audit": audit_page(store.execute(read_audit())).records,
    }
    if newer is not None:
        found["newer"] = newer.snapshot_newer(store)
    plain: dict[str, Any] = json.decode(json.encode(found))
    return plain


def fill_apart(url: str) -> dict[str, Any]:
    """Write everything in a process of its own, which leaves nothing open."""
    done = subprocess.run([sys.executable, __file__, "--fill", url], check=True, stdout=subprocess.PIPE)
    facts: dict[str, Any] = json.decode(done.stdout)
    return facts


def fill(url: str) -> dict[str, Any]:
    """Write everything; what it is known by."""
    with closing(connect(url)) as store:
        ask = Writing(store)
        known = write_queues(ask) | write_dicts(ask) | write_handles(url, store)
        if newer is not None:
            known |= newer.write_newer(ask, url, store)
        return {"known": known, "snapshot": snapshot(store), "wire": ask.wire}


def redis_commands(url: str) -> Iterator[list[str]]:
    """What makes the keys of a Redis, each word in base 64."""
    from redis import Redis  # noqa: PLC0415 - an extra

    server: Any = Redis.from_url(url.partition("?")[0], protocol=2)
    for key in sorted(server.keys("*")):
        ends_in_ms = server.pttl(key)
        if 0 <= ends_in_ms < DAY_MS:
            # It is over when the tests run.
            continue
        commands = list(commands_for(server, key))
        if ends_in_ms > 0:
            commands.append([b"PEXPIREAT", key, str(server.time()[0] * 1_000 + ends_in_ms).encode()])
        for command in commands:
            yield [base64.b64encode(word).decode() for word in command]


def commands_for(server: Any, key: bytes) -> Iterator[list[bytes]]:
    """What makes one key, on every version of Redis and Valkey."""
    match server.type(key):
        case b"string":
            yield [b"SET", key, server.get(key)]
        case b"hash":
            yield [b"HSET", key, *(word for pair in sorted(server.hgetall(key).items()) for word in pair)]
        case b"set":
            yield [b"SADD", key, *sorted(server.smembers(key))]
        case b"list":
            yield [b"RPUSH", key, *server.lrange(key, 0, -1)]
        case b"zset":
            for member, score in server.zrange(key, 0, -1, withscores=True):
                yield [b"ZADD", key, repr(score).encode(), member]
        case b"stream":
            for number, fields in server.xrange(key):
                yield [b"XADD", key, number, *(word for pair in fields.items() for word in pair)]
            yield [b"XSETID", key, server.xinfo_stream(key)["last-generated-id"]]
        case other:
            raise ValueError(f"{key!r} is a {other!r}, which this cannot write down")


def postgres_statements(url: str) -> str:
    """The schema as statements that psycopg can send."""
    said = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", "--no-comments", "--schema=holdfast", url]
    text = subprocess.run(said, check=True, capture_output=True, text=True).stdout
    # Settings of newer servers, what psql alone understands, and comments.
    lines = [line for line in text.splitlines() if not re.match(r"SET (?!search)|\\|--|SELECT pg_catalog.set_config", line)]
    return re.sub(r"\n{2,}", "\n", "\n".join(lines))


def main(folder: Path) -> None:
    """Write the files of a release."""
    folder.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        facts["sqlite"] = fill_apart(f"sqlite:///{scratch}/jobs.db")
        with closing(sqlite3.connect(f"{scratch}/jobs.db")) as connection:
            connection.execute("vacuum into ?", (f"{scratch}/small.db",))
        keep(folder / "sqlite.db.xz", Path(scratch, "small.db").read_bytes())
        facts["lmdb"] = fill_apart(f"lmdb:///{scratch}/jobs")
        import lmdb  # noqa: PLC0415 - an extra

        os.mkdir(f"{scratch}/small")  # noqa: PTH102
        with lmdb.open(f"{scratch}/jobs", max_dbs=64, readonly=True) as environment:
            environment.copy(f"{scratch}/small", compact=True)
        keep(folder / "lmdb.mdb.xz", Path(scratch, "small", "data.mdb").read_bytes())
    with postgres() as url:
        facts["postgres"] = fill_apart(url)
        keep(folder / "postgres.sql.xz", postgres_statements(url).encode())
    with redis() as url:
        facts["redis"] = fill_apart(url)
        keep(folder / "redis.json.xz", json.encode(list(redis_commands(url))))
    keep(folder / "facts.json.xz", json.encode(facts))


def keep(path: Path, content: bytes) -> None:
    """Write a file, compressed."""
    path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
    print(f"{path}: {len(content)} bytes, {path.stat().st_size} compressed")


if __name__ == "__main__":
    if sys.argv[1] == "--fill":
        print(json.encode(fill(sys.argv[2])).decode())
    else:
        main(Path(sys.argv[1]))
