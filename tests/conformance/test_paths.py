"""The random histories judge the fast paths as well as the full rules: both are taken, by every store, more than now and then."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from holdfast.clock import Clock
from holdfast.commands import Claim, Command, Put, Settle
from holdfast.stores import Store
from holdfast.stores.lmdb.transaction import LmdbTransaction
from holdfast.stores.memory import MemoryStore
from holdfast.stores.postgres.calls import Calls
from holdfast.stores.redis import requests
from holdfast.stores.sqlite.fast import commands as fast
from holdfast.stores.sqlite.fast.lanes import claim_from_lanes, put_in_lanes
from holdfast.testing.differential import Opens, draws_policies, run
from tests.conformance.factories import LmdbFactory, MemoryFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.conformance.plain import switch_off
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url

SEEDS = range(10)
"""Histories of plain queues: those with policies go by the full rules."""
STEPS = 200
FAST_LEAST = {"memory": 0.4, "sqlite": 0.4, "lmdb": 0.4, "redis": 0.4, "postgres": 0.4}
FULL_LEAST = 0.1
LANED_LEAST = 10

Paths = Counter[str]
Makes = Callable[[int], Opens]


@pytest.fixture
def paths() -> Paths:
    return Counter()


def count(paths: Paths, command: Command[Any], *, is_fast: bool) -> None:
    if isinstance(command, Put | Claim | Settle):
        paths["fast" if is_fast else "full"] += 1


def counted(paths: Paths, answer: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose last argument is a command, and which answers None where it leaves it to the full rules."""

    def ask(*arguments: Any) -> Any:
        found = answer(*arguments)
        count(paths, arguments[-1], is_fast=found is not None)
        return found

    return ask


def folder(under: Path, seed: int) -> Path:
    made = under / str(seed)
    made.mkdir()
    return made


@pytest.fixture
def memory(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Makes:
    class Counted(MemoryFactory, frozen=True):
        def make(self, clock: Clock) -> Store:
            store = super().make(clock)
            assert isinstance(store, MemoryStore)
            monkeypatch.setattr(store, "_fast", {kind: counted(paths, answer) for kind, answer in store._fast.items()})
            return store

    return lambda _: Counted()


@pytest.fixture
def sqlite(paths: Paths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Makes:
    monkeypatch.setattr(fast, "answer", counted(paths, fast.answer))
    return lambda seed: SqliteFactory(folder(tmp_path, seed))


@pytest.fixture
def lmdb(paths: Paths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Makes:
    monkeypatch.setattr(LmdbTransaction, "fast", counted(paths, LmdbTransaction.fast))
    return lambda seed: LmdbFactory(folder(tmp_path, seed))


@pytest.fixture
def redis(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Makes:
    answer_to = requests.answer_to

    def answer(command: Command[Any], reply: bytes) -> Any:
        found = msgpack.decode(reply)
        # The fast path of a script answers that all went well, or with the ids of what it leased beside it.
        count(paths, command, is_fast=found is True or (isinstance(command, Claim) and bool(found.get("ids"))))
        return answer_to(command, reply)

    monkeypatch.setattr("holdfast.stores.redis.replies.answer_to", answer)
    return lambda _: RedisFactory(own_redis_url())


@pytest.fixture
def postgres(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Makes:
    """Counts which function is called; what it finds in the tables may still lead it to the full rules."""
    call = Calls.call

    def ask(calls: Calls, command: Command[Any], command_id: str, *, again: bool) -> Any:
        found = call(calls, command, command_id, again=again)
        count(paths, command, is_fast=found.statement != calls._execute)
        return found

    monkeypatch.setattr(Calls, "call", ask)
    return lambda _: PostgresFactory(empty_postgres_url())


@pytest.mark.parametrize("name", FAST_LEAST)
def test_random_histories_take_the_fast_paths_and_the_full_rules(name: str, paths: Paths, request: pytest.FixtureRequest) -> None:
    factory_for: Makes = request.getfixturevalue(name)
    for seed in SEEDS:
        run(factory_for(seed), seed, STEPS)
    taken = paths["fast"] + paths["full"]
    share = paths["fast"] / taken
    assert FAST_LEAST[name] <= share <= 1 - FULL_LEAST, f"{share:.0%} of {taken:,} puts, claims and settlings took the fast path"


def test_random_histories_take_the_fast_path_of_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each part of it is taken, and left to the full rules, in histories of queues with policies."""
    taken: Counter[str] = Counter()

    def counted_by(name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_act(*arguments: Any) -> Any:
            found = act(*arguments)
            taken[f"{name}, {'full' if found is None else 'fast'}"] += 1
            return found

        return count_and_act

    monkeypatch.setattr(fast, "put_in_lanes", counted_by("put", put_in_lanes))
    monkeypatch.setattr(fast, "claim_from_lanes", counted_by("claim", claim_from_lanes))
    for seed in [seed for seed in range(60) if draws_policies(seed)]:
        run(SqliteFactory(folder(tmp_path, seed)), seed, STEPS)
    assert min(taken[name] for name in ("put, fast", "put, full", "claim, fast", "claim, full")) >= LANED_LEAST, taken


@pytest.mark.parametrize("name", [name for name in FAST_LEAST if name != "memory"])
def test_a_fast_path_that_is_switched_off_is_not_taken(
    name: str, paths: Paths, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off(monkeypatch)
    factory_for: Makes = request.getfixturevalue(name)
    run(factory_for(1), 1, STEPS)
    assert paths["full"]
    assert not paths["fast"]
