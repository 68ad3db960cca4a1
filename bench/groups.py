"""What groups cost: put, claim and acknowledge in queues with groups, beside a plain queue of the same store.

    python bench/groups.py --store postgres --store sqlite

CPU time of the server where there is one, else of the process, in rounds in which the queues take turns; on Redis also time by the clock.
`--flat` compares 100,000 groups with 10, and 10,000 full groups before the first open one with none. On SQLite it also prints how many
bytes the groups take: of a million groups with `--many 1000000`, else reckoned from those there are.
"""

import argparse
import gc
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
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
IN_BATCHES = f"batch of {BATCH}"
MODES: dict[str, dict[str, object]] = {
    "plain": {},
    "fair": {"groups": "fair"},
    "limited": {"groups": "fair", "group_limit": 4},
    "strict": {"groups": "strict"},
}

PRICES: dict[str, dict[str, Wanted]] = {
    "memory": {
        "fair": at_most(100, "ours"),
        "limited": at_most(120, "ours"),
        "strict": at_most(120, "ours"),
        "put": at_most(30, "ours"),
        IN_BATCHES: at_most(20, "ours"),
    },
    "lmdb": {"fair": at_most(2.0), "limited": at_most(2.3), "strict": at_most(2.3), "put": at_most(2.2), IN_BATCHES: at_most(2.6)},
    "sqlite": {"fair": at_most(1.6), "limited": at_most(1.8), "strict": at_most(1.8), "put": at_most(1.5), IN_BATCHES: at_most(2.3)},
    "postgres": {"fair": at_most(1.5), "limited": at_most(1.7), "strict": at_most(1.7), "put": at_most(1.3), IN_BATCHES: at_most(2.3)},
    "redis": {"fair": at_most(1.6), "limited": at_most(1.8), "strict": at_most(1.8), "put": at_most(1.3), IN_BATCHES: at_most(2.3)},
}
"""What is wanted of claim and acknowledgement by mode, and of what else is done in all modes.

These are ratios to a plain queue. In memory a plain queue has shortcuts that cost next to nothing, so microseconds are judged there.
"""
BY_CLOCK: dict[str, dict[str, Wanted]] = {"redis": {"fair": at_most(1.3), "limited": at_most(1.4), "strict": at_most(1.4)}}
"""The same of claim and acknowledgement by the clock, where that is wanted, too."""

FLAT, FLAT_AT_A_MILLION = 1.25, 1.3
MB_OF_A_MILLION = 100

Cpu = Callable[[], float]
Costs = dict[str, dict[str, list[float]]]
"""Microseconds for each message, by what was done and by queue, one for each round."""


class Bench(Struct):
    """A store, and the CPU seconds that are counted: of the server where there is one, else of this process."""

    store: Store
    cpu_s: Cpu
    messages: int
    costs: Costs = {}
    walls: Costs = {}
    """The same by the clock."""

    def round(self, name: str, queue: str, groups: int) -> None:
        items = [Item(new_id(), VALUE, group=None if name == "plain" else f"g{number % groups}") for number in range(self.messages)]
        self._measure("put", name, lambda: [self.store.execute(Put(queue, [item])) for item in items])
        self._measure("claim + ack", name, lambda: [self._work(queue, 1) for _ in range(self.messages)])
        for start in range(0, self.messages, 100):
            self.store.execute(Put(queue, [_renewed(item) for item in items[start : start + 100]]))
        self._measure(IN_BATCHES, name, lambda: [self._work(queue, BATCH) for _ in range(self.messages // BATCH)])
        while self._work(queue, 100):
            pass

    def _work(self, queue: str, limit: int) -> int:
        messages = self.store.execute(Claim(queue, "bench", LEASE_S, limit)).messages
        if messages:
            self.store.execute(Settle([message.receipt for message in messages]))
        return len(messages)

    def _measure(self, what: str, name: str, work: Callable[[], object]) -> None:
        gc.collect()
        before, start = self.cpu_s(), time.perf_counter()
        work()
        elapsed_s, cpu_s = time.perf_counter() - start, self.cpu_s() - before
        self.costs.setdefault(what, {}).setdefault(name, []).append(1e6 * cpu_s / self.messages)
        self.walls.setdefault(what, {}).setdefault(name, []).append(1e6 * elapsed_s / self.messages)

    def forget(self) -> None:
        self.costs.clear()
        self.walls.clear()


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
            bench.forget()
    for what, by_mode in bench.costs.items():
        for mode in [mode for mode in MODES if mode != "plain"]:
            wanted = PRICES.get(store, {}).get(mode if what == "claim + ack" else what)
            yield _figure(f"{store}: {what}, {mode}, {groups:,} groups", by_mode[mode], by_mode["plain"], "plain", wanted)
    for mode, wanted in BY_CLOCK.get(store, {}).items():
        by_clock = bench.walls["claim + ack"]
        yield _figure(f"{store}: claim + ack by the clock, {mode}, {groups:,} groups", by_clock[mode], by_clock["plain"], "plain", wanted)


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
            bench.forget()
    costs = bench.costs["claim + ack"]
    flat = at_most(FLAT_AT_A_MILLION if many >= 1_000_000 else FLAT)
    yield _figure(f"{store}: claim + ack, {many:,} groups", costs["many"], costs["few"], "10 groups", flat)
    yield _figure(f"{store}: claim + ack, {full:,} full groups before", costs["full"], costs["few"], "none", at_most(FLAT))


def sizes_of_lanes(url: str, many: int) -> Iterator[Figure]:
    """How large the lanes of an SQLite store are, with their indexes: those that the queues of `flatness` have kept."""
    path = url.removeprefix("sqlite://").partition("?")[0]
    with closing(sqlite3.connect(path)) as file:
        (size,) = file.execute("select sum(pgsize) from dbstat where name glob 'holdfast_lanes*'").fetchone()
        (count,) = file.execute("select count(*) from holdfast_lanes").fetchone()
    each = size / count
    named = "measured" if many >= 1_000_000 else f"reckoned from {count:,}"
    yield Figure("sqlite: bytes of lanes, each group", each, "bytes")
    yield Figure(f"sqlite: bytes of lanes, 1,000,000 groups, {named}", each, "MB", wanted=at_most(MB_OF_A_MILLION, "ours"))


def fill(store: Store, queue: str, groups: int, *, per_group: int, prefix: str = "g") -> None:
    total = groups * per_group
    for start in range(0, total, 1_000):
        items = [Item(new_id(), VALUE, group=f"{prefix}{number % groups}") for number in range(start, min(total, start + 1_000))]
        store.execute(Put(queue, items))


def _figure(what: str, ours: list[float], theirs: list[float], beside: str, wanted: Wanted | None) -> Figure:
    return compare(what, ours, theirs, unit="µs", beside=beside, wanted=wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", action="append", choices=[name for name in STORES if name != "http"], help="may be given several times")
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--messages", type=int, default=400, help="in each round")
    parser.add_argument("--flat", action="store_true", help="measure what must not grow with the number of groups")
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--full", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="two small rounds, to see that everything runs; nothing is judged")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    found: dict[str, list[Figure]] = {}
    rounds = 2 if options.quick else options.rounds
    for name in options.store or [name for name in STORES if name != "http"]:
        with ExitStack() as stack:
            url, server_s = stack.enter_context(STORES[name]())[1]
            store = connect(url)
            stack.callback(store.close)
            bench = Bench(store, server_s or time.process_time, 40 if options.quick else options.messages)
            if options.flat:
                found[name] = list(flatness(name, bench, rounds, many=options.many, full=options.full))
                if name == "sqlite":
                    found[name] += sizes_of_lanes(url, options.many)
            else:
                found[name] = list(prices(name, bench, options.groups, rounds))
    notes = [f"CPU time per message, of the server where there is one. {rounds} rounds, load average {os.getloadavg()[0]:.1f}."]
    print_table(found, notes, is_judged=not options.quick)
    if options.json:
        write_json(options.json, found, notes, is_judged=not options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
