"""Every store answers random histories as the memory store does, on its fast path and by its full rules.

Which way commands take is counted over exactly the histories that are run here, by what came of each command, not by what was tried.
"""

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.testing.differential import Opens, run
from holdfast.testing.stateful import machine_for
from tests.conformance.factories import HttpFactory, LmdbFactory, PostgresFactory, RedisFactory, SqliteFactory
from tests.conformance.paths import COUNTED, Paths
from tests.conformance.plain import switch_off
from tests.postgres import empty_postgres_url
from tests.servers import own_redis_url


def redis_in(_: Path) -> RedisFactory:
    return RedisFactory(own_redis_url())


def postgres_in(_: Path) -> PostgresFactory:
    return PostgresFactory(empty_postgres_url())


def http_in(folder: Path) -> HttpFactory:
    return HttpFactory(SqliteFactory(folder))


FACTORIES: list[Callable[[Path], Opens]] = [SqliteFactory, LmdbFactory, redis_in]
STORED = [name for name in COUNTED if name != "memory"]
SHORT = {
    name: settings(max_examples=examples, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
    for name, examples in {"sqlite": 15, "lmdb": 15, "redis": 15, "postgres": 8, "http": 10}.items()
}

SEEDS = range(12)
"""Of each of `PLAIN` three, of which one with groups and policies."""
STEPS = 300

LEAST, MOST = 0.4, 0.9
"""How many of the puts, claims and settlements of all histories take the fast path of each store."""
SOME = 10
"""So many of the other commands that a store has a fast path for take it, and so many do not."""
FEWEST = 3
"""So many of those of a state machine, which draws other ones each time."""
QUEUED = ("Put", "Claim", "Settle")
OTHERS = {
    "memory": (),
    "sqlite": ("Together", *(f"{kind} in groups" for kind in QUEUED)),
    "lmdb": ("Together",),
    "redis": ("Together", "Acquire", "Renew", "Release", "Write", *(f"{kind} in groups" for kind in QUEUED)),
    "postgres": ("Together", "Acquire", "Renew", "Release", "Write", *(f"{kind} in groups" for kind in QUEUED)),
    "http": (),
}
FEW = {"http": range(1, 4)}
"""Seeds of a store that is another one behind a server."""


@pytest.mark.parametrize("store", COUNTED)
def test_random_histories_are_answered_as_in_memory_on_fast_paths_and_by_the_full_rules(tmp_path: Path, store: str) -> None:
    paths = Paths()
    with COUNTED[store](paths, tmp_path) as factory_for:
        for seed in FEW.get(store, SEEDS):
            run(factory_for(seed), seed, STEPS)
    assert unbalanced(paths, OTHERS[store]) == []
    if store == "sqlite":
        assert min(paths.shared[kind] for kind in QUEUED) >= SOME, f"hardly any share statements in one commit: {paths.shared}"


def unbalanced(paths: Paths, others: Iterable[str]) -> list[str]:
    """Which commands take one way too often; a sentence each."""
    shares = {kind: paths.fast[kind] / (paths.fast[kind] + paths.full[kind]) for kind in QUEUED}
    rare = [kind for kind in others if min(paths.fast[kind], paths.full[kind]) < SOME]
    return [
        *(f"{share:.0%} of all {kind} took the fast path" for kind, share in shares.items() if not LEAST <= share <= MOST),
        *(f"{paths.fast[kind]} {kind} took the fast path, and {paths.full[kind]} did not" for kind in rare),
    ]


@pytest.mark.parametrize("store", STORED)
def test_a_fast_path_that_is_switched_off_is_not_taken(tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    switch_off(monkeypatch)
    paths = Paths()
    with COUNTED[store](paths, tmp_path) as factory_for:
        run(factory_for(1), 1, STEPS)
    assert min(paths.full[kind] for kind in QUEUED) >= SOME
    assert not +paths.fast
    assert unbalanced(paths, ())


@pytest.mark.verify
@pytest.mark.parametrize("factory_in", [*FACTORIES, http_in])
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_a_long_random_history_is_answered_as_in_memory(tmp_path: Path, factory_in: Callable[[Path], Opens], seed: int) -> None:
    run(factory_in(tmp_path), seed, steps=3_000, dump_to=tmp_path / "history.jsonl")


@pytest.mark.verify
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_a_long_random_history_on_postgres_is_answered_as_in_memory(postgres_url: str, tmp_path: Path, seed: int) -> None:
    run(PostgresFactory(postgres_url), seed, steps=3_000, dump_to=tmp_path / "history.jsonl")


@pytest.mark.parametrize("store", STORED)
def test_state_machines_are_answered_as_in_memory_on_fast_paths_and_by_the_full_rules(tmp_path: Path, store: str) -> None:
    paths, numbers = Paths(), count()
    with COUNTED[store](paths, tmp_path) as factory_for:
        run_state_machine_as_test(machine_for(lambda _: factory_for(next(numbers))), settings=SHORT[store])
    ways = [sum(way[kind] for kind in QUEUED) for way in (paths.fast, paths.full)]
    assert min(ways) >= FEWEST, f"{paths.fast} took the fast path, and {paths.full} did not"
