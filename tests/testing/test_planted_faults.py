"""Random histories find faults that only the fast path of a store has."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

from holdfast.errors import StoreError
from holdfast.stores.lmdb.fast import Fast
from holdfast.stores.lmdb.transaction import LmdbTransaction
from holdfast.stores.memory.fast import queue as memory_queue
from holdfast.stores.sqlite.fast import commands as sqlite_commands
from holdfast.stores.sqlite.fast import commits as sqlite_commits
from holdfast.stores.sqlite.fast import lanes as sqlite_lanes
from holdfast.stores.sqlite.transaction import SqliteTransaction
from holdfast.testing import heard
from holdfast.testing.differential import Diverged, Opens, run
from tests.conformance.factories import LmdbFactory, MemoryFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url
from tests.testing import broken_lua, broken_python, broken_sql
from tests.testing.controls import PlainStore

SEEDS = (2, 1, 0, *range(3, 12))
"""First those that find most: one with groups, one without, one of few plain commands."""
STEPS = 200


@contextmanager
def lmdb(folder: Path, step: str, method: str, instead: Callable[..., Any]) -> Iterator[Opens]:
    """A store in LMDB in which a step of the fast path calls something else instead of a method of the transaction, or of its hints."""
    whole = getattr(Fast, step)

    def broken(tx: Any, command: Any) -> Any:
        owner = tx.hints if method == "wake" else tx
        called = getattr(owner, method)
        with patch.object(owner, method, lambda *given: instead(called, *given)):
            return whole(tx, command)

    with patch.object(Fast, step, broken):
        yield LmdbFactory(folder)


@contextmanager
def unrenewed(kind: type, factory: Opens) -> Iterator[Opens]:
    """A store in a file whose checkpoints look at no claim."""
    with patch.object(kind, "renew_claim", lambda *_, **__: True):
        yield factory


@contextmanager
def memory(find: str, instead: str) -> Iterator[Opens]:
    """A store in memory with a broken fast path, beside one that takes none."""
    with broken_python.broken(memory_queue, find, instead), patch("holdfast.testing.differential.MemoryStore", PlainStore):
        yield MemoryFactory()


@contextmanager
def sqlite(module: ModuleType, find: str, instead: str, folder: Path) -> Iterator[Opens]:
    with broken_python.broken(module, find, instead):
        yield SqliteFactory(folder)


@contextmanager
def redis(find: str, instead: str) -> Iterator[Opens]:
    with broken_lua.broken(find, instead):
        yield RedisFactory(own_redis_url())


@contextmanager
def postgres(find: str, instead: str) -> Iterator[Opens]:
    url = empty_postgres_url(" planted")
    with broken_sql.broken(url, find, instead):
        yield PostgresFactory(url)


def plant(breaks: Callable[[str, str], AbstractContextManager[Opens]], find: str, instead: str, _: Path) -> AbstractContextManager[Opens]:
    """A fault of a store that needs no folder."""
    return breaks(find, instead)


FAULTS: dict[str, Callable[[Path], AbstractContextManager[Opens]]] = {
    "a dropped field": lambda _: redis(
        r"  for field, content in pairs\(kept\) do\n", "  kept.max_attempts = nil\n  for field, content in pairs(kept) do\n"
    ),
    "a wrong order": lambda _: postgres(r"f\.priority desc, f\.position, f\.n", "f.priority desc, f.position desc, f.n"),
    "a checkpoint of a lost claim": lambda _: postgres(r"is_held\(m\.state, m\.token, m\.until, of_token, now\) is not true", "false"),
    "a checkpoint that renews nothing": lambda _: postgres(r"set until = end_of\(now, lease_s\), failures", "set failures"),
    "a checkpoint of a lost claim on Redis": lambda _: redis(r" or message.token ~= token or ended_at <= now", ""),
    "a checkpoint that renews nothing on Redis": lambda _: redis(r'"0", struct.pack\(NUMBER, ends_at\) \.\. n', '"0", ended_at .. n'),
    "a share beyond the capacity on Redis": lambda _: redis(r"name\.used \+ weight > name\.capacity", "false"),
    "a share that is given back and still counted on Redis": lambda _: redis(r"shared\.used - share\.weight", "shared.used"),
    "checkpoints that look at no claim on SQLite": lambda folder: unrenewed(SqliteTransaction, SqliteFactory(folder)),
    "checkpoints that look at no claim on LMDB": lambda folder: unrenewed(LmdbTransaction, LmdbFactory(folder)),
    "a missed wake-up": lambda folder: lmdb(folder, "_put", "wake", lambda *_: None),
    "a reused token": lambda folder: lmdb(folder, "_claim", "append", lambda append, drafts: append(drafts) - 1),
    "a missing event": lambda folder: lmdb(folder, "_settle", "append", lambda *_: 0),
}


Broken = tuple[str, str]
"""A pattern, and what to put instead."""

MEMORY: dict[str, Broken] = {
    "a dropped field": (r"item\.message\(name", "replace(item, max_attempts=None).message(name"),
    "a wrong order": (r"slots\.append\(\(now, n\)\)", "slots.appendleft((now, n))"),
    "a missed wake-up": (r"waiters\.hint_each\(queue\.put_hints if", "len(queue.put_hints if"),
    "a reused token": (r"token=token,", "token=token - 1,"),
    "a missing event": (r'events\.append\(KeptOne\(index, now, "settled"', '(KeptOne(index, now, "settled"'),
}
FORGET = '; tx.sql.execute("delete from holdfast_events where n = (select max(n) from holdfast_events)")'
SQLITE: dict[str, tuple[ModuleType, str, str]] = {
    "a dropped field": (sqlite_commands, r"        item\.max_attempts,\n", "        None,\n"),
    "a dropped key": (sqlite_commands, r"bindable\(item\.value\), item\.key\)", "bindable(item.value), None)"),
    "a wrong order": (
        sqlite_commands,
        r"tx\.head_rows\(queue, command\.limit\)",
        "tx.head_rows(queue, command.limit + 1)[-command.limit :]",
    ),
    "a missed wake-up": (sqlite_commands, r"tx\.hints\.wake\(topic, len\(ids\)\)", "len(ids)"),
    "a reused token": (sqlite_commands, r"token = tx\.tell\(", "token = -1 + tx.tell("),
    "a missing event": (sqlite_commands, r'"to": "done"}, -ONE_LEASED\)', rf"\g<0>{FORGET}"),
    "a dropped field of one commit": (sqlite_commands, r"\(item\.id, item\.priority, begin", "(item.id, 0, begin"),
    "a wrong order in one commit": (sqlite_commits, r"put_many\(tx, queue, items,", "put_many(tx, queue, items[::-1],"),
    "a missed wake-up of one commit": (sqlite_commits, r"tx\.hints\.wake\(topic, len\(items\)\)", "len(items)"),
    "a reused token in one commit": (sqlite_commits, r"strict=True\), first\)", "strict=True), first - 1)"),
    "a missing event of one commit": (sqlite_commits, r"follow_settled\(tx, queue, gone\.values\(\)\)", rf"\g<0>{FORGET}"),
    "a dropped field in groups": (sqlite_lanes, r"item\.priority, now, item\.max_attempts,", "item.priority, now, None,"),
    "a wrong order in groups": (sqlite_lanes, r" rank_of\(policy, item\.priority, now\)", " -rank_of(policy, item.priority, now)"),
    "a missed wake-up in groups": (sqlite_lanes, r"tx\.hints\.wake\(topic, count\)", "len(topic)"),
    "a reused token in groups": (sqlite_lanes, r"token = tx\.tell\(", "token = -1 + tx.tell("),
    "a missing event in groups": (sqlite_lanes, r"return (tx\.tell\(topic, .*ONE_READY\))", rf"token = \1{FORGET}; return token"),
}
LUA_IN_GROUPS: dict[str, Broken] = {
    "a dropped field": (r"kept or \{\}, now\)", "{}, now)"),
    "a wrong order": (r'call\("ZRANGE", queue \.\. ":open"', 'call("ZREVRANGE", queue .. ":open"'),
    "a reused token": (r"(tied = chosen and chosen\.tied(?s:.*?)= pack_claim\()token", r"\1token - 1"),
    "a missed wake-up": (r"lane\.open and lane\.arrivals or \(.*?\)\)", "0)"),
    "a missing event": (r'(?m)^  write_event\(queue, token, token_text, "claimed", string.*\n', ""),
}
SQL_IN_GROUPS: dict[str, Broken] = {
    "a dropped field": (
        r"of_lane, level_of\(s, null, null, coalesce\(\(o ->> 'priority'\)::integer, 0\)",
        "of_lane, level_of(s, null, null, 0",
    ),
    "a wrong order": (r"order by f\.level desc, f\.rank, f\.n", "order by f.level desc, f.rank desc, f.n desc"),
    "a reused token": (
        r"token = nextval\('numbers'\), expired_to = expiry,(?s:(.*?))returning m\.token",
        r"token = 7, expired_to = expiry,\1returning nextval('numbers')",
    ),
    "a missed wake-up": (r"perform wake\('queue:' \|\| (of_queue|s\.name), woken\) where woken > 0;", ""),
    "a missing event": (r"perform keep_moment\(now\), save_served", r"delete from events where n = m.number;\n\g<0>"),
    "no next turn after a batch": (r"set turn = token, place = g\.o, ", "set "),
    "a group that stays open after its last": (r"perform close_lanes\(s, dry, now\)", "perform s, dry, now"),
}
FAULTS |= {f"{name} in memory": partial(plant, memory, *broken) for name, broken in MEMORY.items()}
FAULTS |= {f"{name} on SQLite": partial(sqlite, *broken) for name, broken in SQLITE.items()}
FAULTS |= {f"{name} in groups on Redis": partial(plant, redis, *broken) for name, broken in LUA_IN_GROUPS.items()}
FAULTS |= {f"{name} in groups on PostgreSQL": partial(plant, postgres, *broken) for name, broken in SQL_IN_GROUPS.items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_random_histories_find(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heard, "LATER_S", 1.0)
    assert is_found(FAULTS[fault], tmp_path)


def test_random_histories_find_nothing_where_nothing_is_broken(tmp_path: Path) -> None:
    assert not is_found(lambda folder: lmdb(folder, "_put", "wake", lambda wake, *given: wake(*given)), tmp_path)


@pytest.mark.parametrize("module", [sqlite_commands, sqlite_commits, sqlite_lanes])
def test_a_module_that_is_made_anew_and_not_broken_is_right(module: ModuleType, tmp_path: Path) -> None:
    with sqlite(module, r"\A", "", tmp_path) as factory:
        run(factory, SEEDS[0], STEPS)


def test_the_fast_path_in_memory_made_anew_is_right() -> None:
    with memory(r"\A", "") as factory:
        run(factory, SEEDS[0], STEPS)


def is_found(fault: Callable[[Path], AbstractContextManager[Opens]], under: Path) -> bool:
    for seed in SEEDS:
        folder = under / str(seed)
        folder.mkdir()
        with fault(folder) as factory:
            try:
                run(factory, seed, STEPS)
            except (Diverged, StoreError):  # What is broken may fail by itself before it answers anything wrong.
                return True
    return False
