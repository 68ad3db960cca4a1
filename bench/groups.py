"""What groups cost: put, claim and acknowledge in queues with groups, beside a plain queue of the same store.

    python bench/groups.py --store postgres --store sqlite

CPU time of the server where there is one, else of the process, in rounds in which the queues take turns. `--flat` compares 100,000 groups
with 10, and 10,000 full groups before the first open one with none.
"""

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the package `redis` would be a benchmark.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

from msgspec import Raw, Struct

from bench.before_after import STORES
from bench.measure import Figure, Wanted, at_most, compare
from bench.report import print_table, write_json
from holdfast.commands import Claim, Configure, Item, Put, Settle
from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.stores import Store

VALUE = Raw(b'{"to":"someone@example.com","subject":"hello","tries":3}')
LEASE_S = 600.0
BATCH = 10
MODES: dict[str, dict[str, object]] = {
    "plain": {},
    "fair": {"groups": "fair"},
    "limited": {"groups": "fair", "group_limit": 4},
    "strict": {"groups": "strict"},
}

PRICES: dict[str, dict[str, float]] = {
    "lmdb": {"fair": 2.0, "limited": 2.3, "strict": 2.3},
    "sqlite": {"fair": 1.6, "limited": 1.8, "strict": 1.8, "put": 1.5, "batch": 2.3},
    "postgres": {"fair": 1.5, "limited": 1.7, "strict": 1.7, "put": 1.3, "batch": 2.3},
    "redis": {"fair": 1.6, "limited": 1.8, "strict": 1.8, "put": 1.3, "batch": 2.3},
}
"""The highest ratios that are wanted, for claim and acknowledgement by mode."""

Cpu = Callable[[], float]
Costs = dict[str, dict[str, list[float]]]
"""Microseconds for each message, by what was done and by queue, one for each round."""


class Bench(Struct):
    """A store, and the CPU seconds that are counted: of the server where there is one, else of this process."""

    store: Store
    cpu_s: Cpu
    messages: int
    costs: Costs = {}

    def round(self, name: str, queue: str, groups: int) -> None:
        items = [Item(new_id(), VALUE, group=None if name == "plain" else f"g{number % groups}") for number in range(self.messages)]
        self._measure("put", name, lambda: [self.store.execute(Put(queue, [item])) for item in items])
        self._measure("claim + ack", name, lambda: [self._work(queue, 1) for _ in range(self.messages)])
        for start in range(0, self.messages, 100):
            self.store.execute(Put(queue, [_renewed(item) for item in items[start : start + 100]]))
        self._measure("batch", name, lambda: [self._work(queue, BATCH) for _ in range(self.messages // BATCH)])
        while self._work(queue, 100):
            pass

    def _work(self, queue: str, limit: int) -> int:
        messages = self.store.execute(Claim(queue, "bench", LEASE_S, limit)).messages
        if messages:
            self.store.execute(Settle([message.receipt for message in messages]))
        return len(messages)

    def _measure(self, what: str, name: str, work: Callable[[], object]) -> None:
        gc.collect()
        before = self.cpu_s()
        work()
        self.costs.setdefault(what, {}).setdefault(name, []).append(1e6 * (self.cpu_s() - before) / self.messages)


def _renewed(item: Item) -> Item:
    return Item(new_id(), item.value, group=item.group)


def open_queue(store: Store, queue: str, mode: str) -> None:
    store.execute(Configure("queue", queue, **MODES[mode]))  # type: ignore[arg-type] # the settings of a mode


def prices(store: str, bench: Bench, groups: int, rounds: int) -> Iterator[Figure]:
    for mode in MODES:
        open_queue(bench.store, mode, mode)
    for number in range(rounds + 1):
        print(f"{store}: round {number} of {rounds}", file=sys.stderr, flush=True)
        for mode in MODES:
            bench.round(mode, mode, groups)
        if not number:
            bench.costs.clear()
    for what, by_mode in bench.costs.items():
        for mode in [mode for mode in MODES if mode != "plain"]:
            wanted = PRICES.get(store, {}).get(mode if what == "claim + ack" else what)
            yield _figure(f"{store}: {what}, {mode}, {groups:,} groups", by_mode[mode], by_mode["plain"], "plain", wanted)


def flatness(store: str, bench: Bench, rounds: int, *, many: int, full: int) -> Iterator[Figure]:
    """Of claims and acknowledgements in a queue with limits: with many groups, and with full ones before the first open one."""
    for queue in ("few", "many", "full"):
        open_queue(bench.store, queue, "limited")
    bench.store.execute(Configure("queue", "full", group_limit=1))
    fill(bench.store, "full", full, per_group=2)
    for _ in range(0, full, 1_000):
        bench.store.execute(Claim("full", "bench", LEASE_S, 1_000))
    fill(bench.store, "many", many, per_group=1)
    fill(bench.store, "few", 10, per_group=bench.messages * (rounds + 1))
    fill(bench.store, "full", 10, per_group=bench.messages * (rounds + 1), prefix="open")
    for number in range(rounds + 1):
        print(f"{store}: flatness, round {number} of {rounds}", file=sys.stderr, flush=True)
        for queue in ("few", "many", "full"):
            bench._measure("claim + ack", queue, lambda queue=queue: [bench._work(queue, 1) for _ in range(bench.messages)])  # type: ignore[misc] # noqa: SLF001
        if not number:
            bench.costs.clear()
    costs = bench.costs["claim + ack"]
    yield _figure(f"{store}: claim + ack, {many:,} groups", costs["many"], costs["few"], "10 groups", 1.25)
    yield _figure(f"{store}: claim + ack, {full:,} full groups before", costs["full"], costs["few"], "none", 1.25)


def fill(store: Store, queue: str, groups: int, *, per_group: int, prefix: str = "g") -> None:
    total = groups * per_group
    for start in range(0, total, 1_000):
        items = [Item(new_id(), VALUE, group=f"{prefix}{number % groups}") for number in range(start, min(total, start + 1_000))]
        store.execute(Put(queue, items))


def _figure(what: str, ours: list[float], theirs: list[float], beside: str, wanted: float | None) -> Figure:
    judged: Wanted | None = None if wanted is None else at_most(wanted)
    return compare(what, ours, theirs, unit="µs", beside=beside, wanted=judged)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", action="append", choices=[name for name in STORES if name != "http"], help="may be given several times")
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--messages", type=int, default=400, help="in each round")
    parser.add_argument("--flat", action="store_true", help="measure what must not grow with the number of groups")
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--full", type=int, default=10_000)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    found: dict[str, list[Figure]] = {}
    for name in options.store or [name for name in STORES if name != "http"]:
        with ExitStack() as stack:
            url, server_s = stack.enter_context(STORES[name]())[1]
            store = connect(url)
            stack.callback(store.close)
            bench = Bench(store, server_s or time.process_time, options.messages)
            if options.flat:
                found[name] = list(flatness(name, bench, options.rounds, many=options.many, full=options.full))
            else:
                found[name] = list(prices(name, bench, options.groups, options.rounds))
    notes = [f"CPU time per message, of the server where there is one. {options.rounds} rounds, load average {os.getloadavg()[0]:.1f}."]
    print_table(found, notes, is_judged=True)
    if options.json:
        write_json(options.json, found, notes, is_judged=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
