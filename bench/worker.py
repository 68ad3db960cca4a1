"""Jobs a second of one worker process with a handler that does nothing, beside other libraries on the same store in the same run.

    python bench/worker.py                  # the whole run
    python bench/worker.py --quick          # whether it works
    python bench/worker.py --only redis     # one store; may be given several times
    python bench/worker.py --concurrency 1  # the same

Contenders take turns, round by round, each in a fresh process, on a file or in a queue of its own; ratios are of the same round. A peer
without concurrency stands only beside a concurrency of 1. Those not installed are named and left out.
"""

import argparse
import logging
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the package `redis` would be a benchmark.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

from msgspec import Struct

from bench import worker_peers
from bench.measure import in_fresh_process
from holdfast import Worker
from holdfast.testing.servers import postgres, redis

Work = Callable[[str, int, int], float]
"""Puts so many jobs at a place, then answers how many seconds one worker of that concurrency took for all of them."""


def nothing(value: Any) -> None:
    """Do no work."""


async def nothing_async(value: Any) -> None:
    """Do no work, as a task."""


def ours(function: Callable[..., Any], at: str = "{place}", prefetch: int | None = None) -> Work:
    def run(place: str, jobs: int, concurrency: int) -> float:
        url, queue = at.format(place=place), worker_peers.own_queue()
        worker = Worker(function, queue, base_url=url, concurrency=concurrency, prefetch=prefetch)
        worker.put_many(range(jobs))
        started = time.perf_counter()
        worker.run(max_jobs=jobs, signals=False)
        return time.perf_counter() - started

    return run


class Contender(Struct, frozen=True):
    """One that takes part, and the one of ours beside which it stands."""

    work: Work
    beside: str = ""
    package: str = "holdfast"
    has_concurrency: bool = True

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None


POWER, PROCESS = "ours, survives power loss", "ours, survives kills"
THREADS, TASKS = "ours, threads", "ours, tasks"
ONE_BY_ONE = "ours, prefetch 0"

ON_POWER, ON_PROCESS = (f"sqlite:///{{place}}/jobs.db?durability={durability}" for durability in ("power", "process"))

ON_SERVER: Mapping[str, Contender] = {
    THREADS: Contender(ours(nothing)),
    TASKS: Contender(ours(nothing_async)),
    ONE_BY_ONE: Contender(ours(nothing_async, prefetch=0), TASKS),
}

CONTENDERS: Mapping[str, Mapping[str, Contender]] = {
    # Each peer stands beside the one of ours that survives the same: localqueue syncs at checkpoints, huey at every commit.
    "sqlite": {
        POWER: Contender(ours(nothing, ON_POWER)),
        ONE_BY_ONE: Contender(ours(nothing, ON_POWER, 0), POWER),
        "huey": Contender(worker_peers.huey, POWER, "huey"),
        PROCESS: Contender(ours(nothing, ON_PROCESS)),
        "localqueue": Contender(worker_peers.localqueue, PROCESS, "localqueue", has_concurrency=False),
    },
    # And here beside the one that runs handlers as it does.
    "redis": {
        **ON_SERVER,
        "RQ": Contender(worker_peers.rq, THREADS, "rq", has_concurrency=False),
        "Dramatiq": Contender(worker_peers.dramatiq, THREADS, "dramatiq"),
        "arq": Contender(worker_peers.arq, TASKS, "arq"),
        "SAQ": Contender(worker_peers.saq, TASKS, "saq"),
    },
    "postgres": {**ON_SERVER, "procrastinate": Contender(worker_peers.procrastinate, TASKS, "procrastinate")},
}


@contextmanager
def on_disk() -> Iterator[str]:
    """Yield a folder for files; `TMPDIR` says on which disk."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


PLACES: Mapping[str, Callable[[], AbstractContextManager[str]]] = {"sqlite": on_disk, "redis": redis, "postgres": postgres}


def main() -> int:
    asked = parse()
    rounds, jobs = (1, 20) if asked.quick else (3, 500)
    begun, load, broken = time.monotonic(), os.getloadavg()[0], 0
    for store in asked.only or CONTENDERS:
        absent = [name for name, contender in CONTENDERS[store].items() if not contender.is_installed]
        try:
            with PLACES[store]() as place:
                for concurrency in asked.concurrency or ((1, 8) if asked.quick else (1, 8, 50)):
                    show(f"{store}, concurrency {concurrency}", CONTENDERS[store], measure(store, place, concurrency, rounds, jobs))
        except Exception:  # noqa: BLE001 - the other stores are worth having
            broken += 1
            print(f"{store} broke: {traceback.format_exc()}")
        print(f"  Not installed here and so left out: {', '.join(absent) or 'nobody'}.\n")
    print("With prefetch=0 a worker claims only what it can begin: at a concurrency of 1, each job is a step of the store of its own.")
    print(f"It took {time.monotonic() - begun:.0f} s; load average {load:.1f} before. Read ratios, not absolutes.")
    return 1 if broken else 0


def parse() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", action="append", choices=list(CONTENDERS), help="measure only on this store; may be given several times")
    options.add_argument("--concurrency", action="append", type=int, help="only with so many jobs at once; may be given several times")
    options.add_argument("--quick", action="store_true", help="a few jobs, to see that it works")
    return options.parse_args()


def measure(store: str, place: str, concurrency: int, rounds: int, jobs: int) -> dict[str, list[float]]:
    """Jobs a second of each contender, round by round."""
    fit = [name for name, one in CONTENDERS[store].items() if one.is_installed and (one.has_concurrency or concurrency == 1)]
    rates: dict[str, list[float]] = {name: [] for name in fit}
    for _ in range(rounds):
        for name in fit:
            rates[name].append(jobs / in_fresh_process(run_one, store, name, place, jobs, concurrency))
    return rates


def run_one(store: str, name: str, place: str, jobs: int, concurrency: int) -> float:
    logging.disable(logging.CRITICAL)
    work = CONTENDERS[store][name].work
    if PLACES[store] is not on_disk:
        return work(place, jobs, concurrency)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        return work(folder, jobs, concurrency)


def show(title: str, contenders: Mapping[str, Contender], rates: Mapping[str, list[float]]) -> None:
    print(title)
    for name, each in rates.items():
        line, own = f"  {name:<26} {median(each):>8,.0f} jobs/s", contenders[name].beside
        if own:
            ratio = median(mine / theirs for mine, theirs in zip(rates[own], each, strict=True))
            line += f"    {own!r} does {ratio:.2f} times that"
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
