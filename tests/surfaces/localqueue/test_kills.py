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
    SQLiteQueueStore,
    TransactionalOutboxCommit,
    URLIdempotencyStore,
    URLResultStore,
    relay_commits,
)

PROGRAM = """
import sys
from holdfast.stores.sqlite.writer import Writer
from holdfast.surfaces.localqueue import persistent_worker
from tests.surfaces.localqueue.test_kills import orders_at

commit = Writer._commit

def told(self, *args):
    print("before a commit", flush=True)
    commit(self, *args)
    print("after a commit", flush=True)

Writer._commit = told
orders = orders_at(sys.argv[1])

@persistent_worker(orders, max_tries=3, dead_letter_on_failure=False)
def handle(number):
    print("handling", flush=True)
    return {"n": number}

while True:
    handle()
"""
MESSAGES = 10


def orders_at(path: str | Path) -> PersistentQueue[int]:
    store = SQLiteQueueStore(path)
    results = URLResultStore(store.client)
    delivery = EffectivelyOnceDelivery(
        idempotency_store=URLIdempotencyStore(store.client),
        result_policy=ReturnStoredResult(result_store=results),
        commit_policy=TransactionalOutboxCommit(outbox_store=results),
    )
    # Short, because each kill leaves a lease to wait for.
    return PersistentQueue("orders", store=store, delivery_policy=delivery, lease_timeout=1.0)


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.verify)])
def test_a_worker_killed_at_any_step_loses_nothing_and_commits_whole(kills: int, tmp_path: Path) -> None:
    chance = random.Random(7)
    orders = orders_at(tmp_path / "orders")
    numbers = range(MESSAGES * max(1, kills // 3))
    for number in numbers:
        orders.put(number, dedupe_key=f"order-{number}")

    for _ in range(kills):
        run_until_killed(tmp_path / "orders", chance.randrange(1, 60))
    finish(tmp_path / "orders", orders)

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


def run_until_killed(path: Path, lines: int) -> None:
    """Kill a worker when it has said so many things."""
    with worker(path) as process:
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.kill()


def finish(path: Path, orders: PersistentQueue[int]) -> None:
    with worker(path) as process:
        assert process.stdout is not None
        while orders.stats().total:
            process.stdout.readline()
        process.kill()


def worker(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, path], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
