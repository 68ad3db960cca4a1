"""Random histories find faults that only the fast path of a store has."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from holdfast.stores.lmdb.fast import Fast
from holdfast.stores.lmdb.transaction import LmdbTransaction
from holdfast.stores.sqlite.transaction import SqliteTransaction
from holdfast.testing.differential import Diverged, Opens, run
from tests.conformance.factories import LmdbFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url
from tests.testing import broken_lua, broken_sql

SEEDS = range(10)
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
def redis(find: str, instead: str) -> Iterator[Opens]:
    with broken_lua.broken(find, instead):
        yield RedisFactory(own_redis_url())


@contextmanager
def postgres(find: str, instead: str) -> Iterator[Opens]:
    url = empty_postgres_url(" planted")
    with broken_sql.broken(url, find, instead):
        yield PostgresFactory(url)


FAULTS: dict[str, Callable[[Path], AbstractContextManager[Opens]]] = {
    "a dropped field": lambda _: redis(
        r"  for field, content in pairs\(kept\) do\n", "  kept.max_attempts = nil\n  for field, content in pairs(kept) do\n"
    ),
    "a wrong order": lambda _: postgres(r"f\.priority desc, f\.position, f\.n", "f.priority desc, f.position desc, f.n"),
    "a checkpoint of a lost claim": lambda _: postgres(r"is_held\(m\.state, m\.token, m\.until, of_token, now\) is not true", "false"),
    "a checkpoint that renews nothing": lambda _: postgres(r"set until = end_of\(now, lease_s\), failures", "set failures"),
    "a checkpoint of a lost claim on Redis": lambda _: redis(r" or message.token ~= token or ended_at <= now", ""),
    "a checkpoint that renews nothing on Redis": lambda _: redis(r'"0", struct.pack\(NUMBER, ends_at\) \.\. n', '"0", ended_at .. n'),
    "checkpoints that look at no claim on SQLite": lambda folder: unrenewed(SqliteTransaction, SqliteFactory(folder)),
    "checkpoints that look at no claim on LMDB": lambda folder: unrenewed(LmdbTransaction, LmdbFactory(folder)),
    "a missed wake-up": lambda folder: lmdb(folder, "_put", "wake", lambda *_: None),
    "a reused token": lambda folder: lmdb(folder, "_claim", "append", lambda append, drafts: append(drafts) - 1),
    "a missing event": lambda folder: lmdb(folder, "_settle", "append", lambda *_: 0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_random_histories_find(fault: str, tmp_path: Path) -> None:
    assert is_found(FAULTS[fault], tmp_path)


def test_random_histories_find_nothing_where_nothing_is_broken(tmp_path: Path) -> None:
    assert not is_found(lambda folder: lmdb(folder, "_put", "wake", lambda wake, *given: wake(*given)), tmp_path)


def is_found(fault: Callable[[Path], AbstractContextManager[Opens]], under: Path) -> bool:
    for seed in SEEDS:
        folder = under / str(seed)
        folder.mkdir()
        with fault(folder) as factory:
            try:
                run(factory, seed, STEPS)
            except Diverged:
                return True
    return False
