"""Workers that are killed at any step: no message is lost, and ledger, result and outbox agree."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.surfaces.localqueue import (
    EffectivelyOnceDelivery,
    PersistentQueue,
    ReturnStoredResult,
    TransactionalOutboxCommit,
    URLIdempotencyStore,
    URLQueueStore,
    URLResultStore,
    relay_commits,
)
from tests.stores_by_name import url_of

PROGRAM = """
import sys
from holdfast.surfaces.localqueue import persistent_worker
from tests.surfaces.localqueue.test_kills import orders_at

orders = orders_at(sys.argv[1])
store = orders.client.store
execute = store.execute

def told(command):
    print("before a command", flush=True)
    answer = execute(command)
    print("after a command", flush=True)
    return answer

store.execute = told

@persistent_worker(orders, max_tries=3, dead_letter_on_failure=False)
def handle(number):
    print("handling", flush=True)
    return {"n": number}

while True:
    handle()
"""
MESSAGES = 10


def orders_at(url: str) -> PersistentQueue[int]:
    store = URLQueueStore(url)
    results = URLResultStore(store.client)
    delivery = EffectivelyOnceDelivery(
        idempotency_store=URLIdempotencyStore(store.client),
        result_policy=ReturnStoredResult(result_store=results),
        commit_policy=TransactionalOutboxCommit(outbox_store=results),
    )
    # Short, because each kill leaves a lease to wait for.
    return PersistentQueue("orders", store=store, delivery_policy=delivery, lease_timeout=1.0)


LONG = [("sqlite", seed) for seed in range(4)] + [("lmdb", 0), ("redis", 0), ("postgres", 0)]


@pytest.mark.parametrize(
    ("kind", "kills", "seed"), [("sqlite", 3, 7), *(pytest.param(kind, 50, seed, marks=pytest.mark.verify) for kind, seed in LONG)]
)
def test_a_worker_killed_at_any_step_loses_nothing_and_commits_whole(kind: str, kills: int, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    url = url_of(kind, tmp_path)
    orders = orders_at(url)
    numbers = range(MESSAGES * max(1, kills // 3))
    for number in numbers:
        orders.put(number, dedupe_key=f"order-{number}")

    for _ in range(kills):
        run_until_killed(url, chance.randrange(1, 60))
    finish(url, orders)

    ledger: Any = getattr(orders.delivery_policy, "idempotency_store")  # noqa: B009 - of the policy that is there
    results: Any = getattr(orders.delivery_policy, "result_policy").result_store  # noqa: B009 - as above
    keys = [f"dedupe:orders:order-{number}" for number in numbers]
    assert {ledger.load(key).status for key in keys} == {"succeeded"}
    assert [results.load(key) for key in keys] == [{"n": number} for number in numbers]
    assert orders.stats().total == 0
    delivered: list[int] = []
    relay_commits(orders, deliver=lambda envelope: delivered.append(envelope["result"]["n"]))
    assert sorted(delivered) == [*numbers]
    orders.store.close()


def run_until_killed(url: str, lines: int) -> None:
    """Kill a worker when it has said so many things."""
    with worker(url) as process:
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.kill()


def finish(url: str, orders: PersistentQueue[int]) -> None:
    with worker(url) as process:
        assert process.stdout is not None
        while orders.stats().total:
            process.stdout.readline()
        process.kill()


def worker(url: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
