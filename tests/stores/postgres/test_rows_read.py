"""A command reads the rows it touches and few besides, however full the store is and whenever its plans were made."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from holdfast.commands import (
    Acquire,
    Browse,
    Change,
    Changes,
    Claim,
    Command,
    Configure,
    Extend,
    LeaseName,
    Look,
    Move,
    Names,
    Put,
    Read,
    Release,
    Renew,
    Settle,
    Survey,
    Together,
    Write,
)
from holdfast.commands.copying import BeginImport, Import
from holdfast.connect import connect
from holdfast.errors import HoldfastError
from holdfast.records import Entry, Message, Receipt, State
from holdfast.stores.postgres.on_connection import BorrowedPostgresStore
from holdfast.testing.conformance.asking import DICT, JOBS, item, raw

SCHEMA = "reads"
MOST = 400
"""So many rows a command may read that is of ten messages, entries or leases."""

FILL = """
insert into names (kind, name, created_at) values ('queue', 'jobs', 1), ('dict', 'settings', 1);
insert into messages (position, created_at, token, until, priority, state, queue, id, key, dead_at, value)
select
  i, 1, (s.state = 'leased')::integer, case when s.state = 'leased' then 4611686018427387904 else 0 end, i % 3, s.state::state, q.queue,
  s.state || i, case s.state when 'dead' then null when 'leased' then '"l' || i || '"' else '"k' || i || '"' end,
  case s.state when 'dead' then i end, '1'
from generate_series(1, {count}) as i,
  unnest(array['ready', 'leased', 'dead', 'buffered']) as s (state), unnest(array['jobs', 'other']) as q (queue);
insert into entries (dict, key, value, revision)
select d.dict, '"k' || lpad(i::text, 8, '0') || '"', '1', i
from generate_series(1, {count}) as i, unnest(array['settings', 'other']) as d (dict);
insert into leases (dict, key, holder, lease_id, token, until)
select d.dict, '"k' || lpad(i::text, 8, '0') || '"', 'somebody', 'lease' || i, i, 4611686018427387904
from generate_series(1, {count}) as i, unnest(array['settings', 'other', '']) as d (dict);
insert into events (n, at, topic, event, data)
select nextval('numbers'), i, t.topic, 'put', '{{"ids":[]}}'
from generate_series(1, {count}) as i, unnest(array['queue:jobs', 'dict:settings', 'queue:other']) as t (topic);
"""

READ = """
select coalesce(sum(seq_scan), 0), coalesce(sum(seq_tup_read + idx_tup_fetch), 0)
from pg_stat_xact_user_tables
where schemaname = 'reads' and relname in ('messages', 'entries', 'leases', 'events')
"""

SOME = range(100, 110)
READY, DEAD = ([f"{state}{number}" for number in SOME] for state in ("ready", "dead"))
KEYS = [f'"k{number}"' for number in SOME]
ENTRY_KEYS = [f'"k{number:08}"' for number in SOME]
RECEIPTS = [Receipt(JOBS, f"leased{number}", 1) for number in SOME]
LEASES = [LeaseName(DICT, f'"k{number:08}"', f"lease{number}") for number in SOME]
DEEP = '"k00002500"'

COMMANDS: dict[str, Command[Any]] = {
    "put": Put(JOBS, [item(f"new {number}") for number in SOME]),
    "put under keys in use": Put(JOBS, [item(f"new {key}", key=key) for key in KEYS]),
    "put under new keys": Put(JOBS, [item(f"new {key}", key=f'"new {number}"') for number, key in enumerate(KEYS)]),
    "claim": Claim(JOBS, "me", 30.0, 10),
    "claim and take": Claim(JOBS, "me", 30.0, 10, take=True),
    "claim a key": Claim(JOBS, "me", 30.0, key=KEYS[0]),
    "settle": Settle(RECEIPTS),
    "settle all or none": Settle(RECEIPTS, all_or_none=True),
    "settle to the front": Settle(RECEIPTS, to="ready", return_to="front"),
    "bury": Settle(RECEIPTS, to="dead"),
    "extend": Extend(RECEIPTS, 30.0),
    **{f"move what is dead to {to}": Move(JOBS, to, ids=DEAD) for to in ("ready", "gone", "dead")},
    **{f"move what is ready to {to}": Move(JOBS, to, ids=READY) for to in ("ready", "gone", "dead")},
    **{f"move some dead to {to}": Move(JOBS, to, state="dead", limit=10) for to in ("ready", "gone")},
    "move to another queue": Move(JOBS, "ready", ids=DEAD, to_queue="elsewhere"),
    **{f"browse {state}": Browse(JOBS, state=state, limit=10) for state in ("ready", "leased", "dead", "buffered")},
    "browse ids": Browse(JOBS, ids=READY),
    "browse keys": Browse(JOBS, keys=KEYS),
    "read keys": Read(DICT, keys=ENTRY_KEYS),
    "read keys for a watch": Read(DICT, keys=ENTRY_KEYS, anchor=True),
    "read a page": Read(DICT, after=DEEP, limit=10),
    "read a prefix": Read(DICT, prefix=DEEP[:-2], limit=10),
    "read in a step": Together([Read(DICT, keys=ENTRY_KEYS), Browse(JOBS, ids=READY)]),
    "write": Write(DICT, [Change(key, value=raw(2)) for key in ENTRY_KEYS]),
    "write under leases": Write(DICT, [Change(name.key, value=raw(2), lease=name.lease_id) for name in LEASES]),
    "acquire": Together([Acquire(name, "new", "me", "mine", 30.0) for name in (DICT, None)]),
    "acquire what is held": Acquire(DICT, ENTRY_KEYS[0], "me", "mine", 30.0, default=raw(1)),
    "renew": Renew(LEASES, 30.0),
    "release": Release(LEASES),
    "look": Look(DICT, ENTRY_KEYS),
    "look at leases of no dict": Look(None, ENTRY_KEYS),
    "list": Names("queue"),
    "list a prefix": Names("queue", prefix="j"),
    "changes": Changes(f"queue:{JOBS}", limit=10),
    "configure": Configure("queue", JOBS, paused=True),
    "survey": Survey(),
    "import": Import(
        *("there", "", "place", "checksum"),
        messages=[Message(JOBS, f"come {number}", raw(1), key=f'"come {number}"') for number in SOME],
        entries=[Entry(DICT, f'"come {number}"', raw(1), 1) for number in SOME],
    ),
}


class Sessions:
    """A store, and two sessions in it: the plans of one were made while it was empty."""

    def __init__(self, url: str, count: int) -> None:
        self._admin = psycopg.connect(url, autocommit=True)
        self.drop()
        connect(f"{url}?schema={SCHEMA}").close()
        self.of_empty, self.of_full = (psycopg.connect(url) for _ in range(2))
        # Whatever comes of it: most of this is not there yet.
        for command in COMMANDS.values():
            with suppress(HoldfastError):
                rows_read(self.of_empty, command)
        self._admin.execute(f"set search_path to {SCHEMA}")
        self._admin.execute(FILL.format(count=count).encode())
        store = connect(f"{url}?schema={SCHEMA}")
        # As far as somebody has read its logs.
        store.execute(Together([Browse(JOBS), Read(DICT, keys=[], anchor=True)]))
        store.close()

    def drop(self) -> None:
        self._admin.execute(f"drop schema if exists {SCHEMA} cascade")

    def close(self) -> None:
        self.of_empty.close()
        self.of_full.close()
        self.drop()
        self._admin.close()


def rows_read(connection: psycopg.Connection[Any], command: Command[Any]) -> tuple[int, int]:
    """How often it reads a table whole, and how many rows it reads, in a transaction that is undone."""
    mine = BorrowedPostgresStore(connection, name=SCHEMA)
    try:
        connection.execute("select")
        if isinstance(command, Import):
            mine.execute(BeginImport(command.source, mine.execute(Survey()), merge=True))
        before = connection.execute(READ).fetchone()
        mine.execute(command)
        after = connection.execute(READ).fetchone()
        assert before is not None
        assert after is not None
        return after[0] - before[0], after[1] - before[1]
    finally:
        connection.rollback()


@pytest.fixture(scope="module", params=[5_000, pytest.param(200_000, marks=[pytest.mark.verify, pytest.mark.timeout(600)])])
def sessions(request: pytest.FixtureRequest, postgres_server: str) -> Iterator[Sessions]:
    sessions = Sessions(postgres_server, request.param)
    yield sessions
    sessions.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_reads_few_rows_of_a_full_store(sessions: Sessions, name: str) -> None:
    for connection in (sessions.of_empty, sessions.of_full):
        scans, rows = rows_read(connection, COMMANDS[name])
        assert scans == 0
        assert rows <= MOST


@pytest.mark.parametrize("state", ["ready", "leased", "dead", "buffered"])
def test_a_late_page_costs_as_little_as_the_first(sessions: Sessions, state: State) -> None:
    for connection in (sessions.of_empty, sessions.of_full):
        (last,) = BorrowedPostgresStore(connection, name=SCHEMA).execute(Browse(JOBS, ids=[f"{state}4900"])).messages
        scans, rows = rows_read(connection, Browse(JOBS, state=state, after=cursor(last), limit=10))
        assert scans == 0
        assert rows <= MOST


def cursor(message: Message) -> tuple[Any, ...]:
    """Where the message stands in the order of its state, as `Browse` tells it."""
    places: dict[State, tuple[Any, ...]] = {
        "ready": (-message.priority, message.position, message.n),
        "leased": (message.until, message.n),
        "dead": (message.dead_at, message.n),
        "buffered": (message.key, message.n),
    }
    return places[message.state]
