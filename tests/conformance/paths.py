"""Counts which commands of a history a store executed on its fast path, and which by its full rules."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import psycopg
from redis import Redis

from holdfast.commands import Acquire, Claim, Command, Put, Release, Renew, Settle, Together, Write
from holdfast.commands.checkpoint import carry_out_checkpoint
from holdfast.stores.lmdb import transaction as lmdb_transaction
from holdfast.stores.lmdb.transaction import LmdbTransaction
from holdfast.stores.memory import store as memory_store
from holdfast.stores.memory.fast.commands import fast_commands
from holdfast.stores.postgres.address import parse
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.redis import scripts
from holdfast.stores.redis.store import RedisStore
from holdfast.stores.sqlite.fast import commands as sqlite_commands
from holdfast.stores.sqlite.fast import commits
from holdfast.testing.differential import Opens
from holdfast.testing.random_policies import TENANTS
from tests.conformance.factories import HttpFactory, LmdbFactory, MemoryFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url, shared_redis
from tests.testing import broken_sql

KINDS: Final = {kind.__name__: kind for kind in (Put, Claim, Settle, Together, Acquire, Renew, Release, Write)}
"""The commands that are counted: those that change something, and that some store has a fast path for."""

ROLE: Final = " judged"
RUN: Final = "  local action = commands[name]\n"


Makes = Callable[[int], Opens]
"""The factory of an empty store for the history of a seed."""


class Paths:
    """How many commands of each kind went each way; those on the queue with groups and policies are counted apart, too."""

    def __init__(self) -> None:
        self.fast: Counter[str] = Counter()
        self.full: Counter[str] = Counter()
        self.shared: Counter[str] = Counter()
        """Those of the fast path that shared their statements with others of their commit."""

    def take(self, command: Command[Any], *, is_fast: bool) -> None:
        """Count a command that was executed."""
        counts = self.fast if is_fast else self.full
        counts.update(names_of(command))

    def follow(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose last argument is a command, and which returns None where it leaves it to the full rules."""

        def ask(*arguments: Any) -> Any:
            found = answer(*arguments)
            self.take(arguments[-1], is_fast=found is not None)
            return found

        return ask

    def share(self, act: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose last argument are jobs, and which returns those that it carried out together."""

        def carry_out(*arguments: Any) -> Any:
            done = act(*arguments)
            for job in done:
                self.take(job.command, is_fast=True)
                self.shared.update(names_of(job.command))
            return done

        return carry_out

    def settle_up(self, asked: Mapping[str, int], full: Mapping[str, int]) -> None:
        """Count what a server was asked, and of that what it executed by the full rules."""
        self.full.update(full)
        self.fast.update({name: count - full.get(name, 0) for name, count in asked.items()})


def names_of(command: Command[Any]) -> list[str]:
    """Under which names a command is counted."""
    kind = type(command).__name__
    if kind not in KINDS:
        return []
    queue = command.receipts[0].queue if isinstance(command, Settle) and command.receipts else getattr(command, "queue", None)
    return [kind, f"{kind} in groups"] if queue == TENANTS else [kind]


def made(folder: Path, seed: int) -> Path:
    own = folder / str(seed)
    own.mkdir()
    return own


@contextmanager
def memory(paths: Paths, _: Path) -> Iterator[Makes]:
    """In memory: the store under test and that with which all are compared."""

    def followed(ground: Any) -> Any:
        return {kind: paths.follow(answer) for kind, answer in fast_commands(ground).items()}

    with patch.object(memory_store, "fast_commands", followed):
        yield lambda _: MemoryFactory()


@contextmanager
def sqlite(paths: Paths, folder: Path) -> Iterator[Makes]:
    together = {kind: paths.share(act) for kind, act in commits._TOGETHER.items()}
    with patch.object(sqlite_commands, "answer", paths.follow(sqlite_commands.answer)), patch.dict(commits._TOGETHER, together):
        yield lambda seed: SqliteFactory(made(folder, seed))


@contextmanager
def http(paths: Paths, folder: Path) -> Iterator[Makes]:
    """Behind a server of this process: what its store executes."""
    with sqlite(paths, folder) as factory_for:
        yield lambda seed: HttpFactory(factory_for(seed))


@contextmanager
def lmdb(paths: Paths, folder: Path) -> Iterator[Makes]:
    with (
        patch.object(LmdbTransaction, "fast", paths.follow(LmdbTransaction.fast)),
        patch.object(lmdb_transaction, "carry_out_checkpoint", paths.follow(carry_out_checkpoint)),
    ):
        yield lambda seed: LmdbFactory(made(folder, seed))


@contextmanager
def asked_of(kind: Any) -> Iterator[Counter[str]]:
    """What stores of a kind are asked."""
    asked, execute = Counter[str](), kind.execute

    def count(store: Any, command: Command[Any]) -> Any:
        asked.update(names_of(command))
        return execute(store, command)

    with patch.object(kind, "execute", count):
        yield asked


@contextmanager
def redis(paths: Paths, _: Path) -> Iterator[Makes]:
    """The scripts count what comes to their full rules."""
    read = scripts._read
    is_grouped = f'(command.queue or (command.queues or {{}})[1]) == "{TENANTS}"'
    count = (
        f'  call("HINCRBY", "judged", name, "1")\n  if {is_grouped} then\n    call("HINCRBY", "judged", name .. " in groups", "1")\n  end\n'
    )

    def counting(name: str) -> str:
        return read(name).replace(RUN, count + RUN) if name == "run" else read(name)

    with ExitStack() as stack:
        stack.callback(scripts.script.cache_clear)
        stack.enter_context(patch.object(scripts, "_read", counting))
        scripts.script.cache_clear()
        server: Any = stack.enter_context(Redis.from_url(shared_redis(), decode_responses=True))
        server.delete("judged")
        asked = stack.enter_context(asked_of(RedisStore))
        yield lambda _: RedisFactory(own_redis_url())
        full = {name: int(count) for name, count in server.hgetall("judged").items()}
        paths.settle_up(asked, {name: full[name] for name in full if name in asked})


@contextmanager
def postgres(paths: Paths, _: Path) -> Iterator[Makes]:
    """The functions count what comes to their full rules, in sequences: nothing takes that back."""
    url = empty_postgres_url(ROLE)
    schema = parse(url).schema
    queue = "coalesce(command ->> 'queue', command #>> '{receipts,0,0}')"
    counted = f"  perform count_judged(command ->> 'type', {queue});\n"
    with (
        psycopg.connect(parse(url).conninfo, autocommit=True) as connection,
        broken_sql.broken(url, r"(?m)^  if command_id <> '' then\n    known := noted", counted + r"\g<0>"),
        broken_sql.broken(url, r"(?m)^  claimed := claim_ruled", rf"  perform count_judged('Claim', '{TENANTS}');\n\g<0>"),
        asked_of(PostgresStore) as asked,
    ):
        connection.execute("select set_config('search_path', quote_ident(%s), false)", (schema,))
        connection.execute(COUNT_JUDGED)
        yield lambda _: PostgresFactory(empty_postgres_url(ROLE))
        rows = connection.execute(
            "select sequencename, coalesce(last_value, 0) from pg_sequences where schemaname = %s", (schema,)
        ).fetchall()
        full = {name.removeprefix("judged "): count for name, count in rows if name.startswith("judged ")}
        paths.settle_up(asked, full)


COUNT_JUDGED = f"""
do $do$
declare
  name text;
begin
  foreach name in array '{{{",".join(KINDS)}}}'::text[] loop
    execute format('create sequence if not exists %I', 'judged ' || name);
    execute format('create sequence if not exists %I', 'judged ' || name || ' in groups');
    execute format('alter sequence %I restart', 'judged ' || name);
    execute format('alter sequence %I restart', 'judged ' || name || ' in groups');
  end loop;
end
$do$;
create or replace function count_judged(kind text, queue text) returns void language plpgsql as $$
begin
  perform nextval(to_regclass(format('%I', 'judged ' || kind)));
  perform nextval(to_regclass(format('%I', 'judged ' || kind || ' in groups'))) where queue = '{TENANTS}';
end
$$;
"""

COUNTED: dict[str, Callable[[Paths, Path], AbstractContextManager[Makes]]] = {
    "memory": memory,
    "sqlite": sqlite,
    "lmdb": lmdb,
    "redis": redis,
    "postgres": postgres,
    "http": http,
}
"""How the paths of each store are counted while a block runs; the counts are there when it has ended."""
