"""What a semaphore costs beside a lock: take and give back, of one that is free, in turns.

python bench/semaphores.py --store sqlite --store postgres
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the package `redis` would be a benchmark.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

from bench.before_after import STORES
from bench.measure import Figure, at_most, compare
from bench.report import print_table
from holdfast.commands import Acquire, LeaseName, Release
from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.stores import Store

CAPACITIES: dict[str, int | None] = {"lock": None, "semaphore": 4}


def cost_us(store: Store, name: str, count: int, cpu_s: Callable[[], float]) -> float:
    """CPU time of each grant and release."""
    before = cpu_s()
    for _ in range(count):
        lease_id = new_id()
        store.execute(Acquire(None, name, "me", lease_id, 60.0, capacity=CAPACITIES[name]))
        store.execute(Release([LeaseName(None, name, lease_id)]))
    return 1e6 * (cpu_s() - before) / count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [name for name in STORES if name != "http"]
    parser.add_argument("--store", action="append", choices=names, help="may be given several times")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--count", type=int, default=400, help="in each round")
    options = parser.parse_args()
    found: dict[str, list[Figure]] = {}
    for kind in options.store or names:
        with STORES[kind]() as places:
            url, server_s = places[1]
            store = connect(url)
            costs: dict[str, list[float]] = {name: [] for name in CAPACITIES}
            for _ in range(options.rounds + 1):
                for name, figures in costs.items():
                    figures.append(cost_us(store, name, options.count, server_s or time.process_time))
            store.close()
            _, *lock = costs["lock"]
            _, *semaphore = costs["semaphore"]
            found[kind] = [compare(f"{kind}: semaphore", semaphore, lock, unit="µs", beside="lock", wanted=at_most(1.6))]
    print_table(found, ["CPU time of a grant and a release, of the server where there is one."], is_judged=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
