"""Jobs a second of one worker process with a handler that does nothing, beside the workers of other libraries in the same run.

    python bench/worker.py            # the whole run
    python bench/worker.py --quick    # whether it works

Contenders take turns, round by round, each in a fresh process on a fresh file; ratios are of the same round. Those not installed are named
and left out.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

PATIENCE_S = 300.0

Contender = Callable[[Path, int, int], float]
"""Puts so many jobs into a folder, then answers how many seconds one worker of that concurrency took for all of them."""


def nothing(value: Any) -> None:
    """Do no work."""


async def nothing_async(value: Any) -> None:
    """Do no work, as a task."""


def ours(function: Callable[..., Any], durability: str, prefetch: int = 0) -> Contender:
    def run(folder: Path, jobs: int, concurrency: int) -> float:
        from holdfast import Worker  # noqa: PLC0415 - a contender is imported in its own process

        url = f"sqlite:///{folder}/jobs.db?durability={durability}"
        worker = Worker(function, "jobs", base_url=url, concurrency=concurrency, prefetch=prefetch)
        worker.put_many(range(jobs))
        started = time.perf_counter()
        worker.run(max_jobs=jobs, signals=False)
        return time.perf_counter() - started

    return run


def localqueue(folder: Path, jobs: int, concurrency: int) -> float:
    """Handles one job a call; it has no concurrency."""
    del concurrency
    theirs: Any = import_module("localqueue")
    queue = theirs.PersistentQueue("jobs", store=theirs.SQLiteQueueStore(folder / "queue.sqlite3"))
    work = theirs.persistent_worker(queue, store_path=str(folder / "retries.sqlite3"), max_tries=3)(nothing)
    for number in range(jobs):
        queue.put(number)
    started = time.perf_counter()
    for _ in range(jobs):
        work()
    return time.perf_counter() - started


def huey(folder: Path, jobs: int, concurrency: int) -> float:
    theirs: Any = import_module("huey").SqliteHuey(filename=str(folder / "huey.db"))
    consumer_of: Any = import_module("huey.consumer").Consumer
    done = 0
    finished = import_module("threading").Event()

    def count(_: int) -> None:
        nonlocal done
        done += 1
        if done >= jobs:
            finished.set()

    work = theirs.task()(count)
    for number in range(jobs):
        work(number)
    consumer = consumer_of(theirs, workers=concurrency, periodic=False, initial_delay=0.001, max_delay=0.01)
    started = time.perf_counter()
    consumer.start()
    finished.wait(PATIENCE_S)
    took_s = time.perf_counter() - started
    consumer.stop(graceful=False)
    return took_s


AHEAD = "ours, power loss, prefetch 50"
POWER, PROCESS, TASKS = "ours, survives power loss", "ours, survives kills", "ours, tasks, survives kills"

CONTENDERS: dict[str, tuple[str, Contender]] = {
    POWER: ("holdfast", ours(nothing, "power")),
    PROCESS: ("holdfast", ours(nothing, "process")),
    TASKS: ("holdfast", ours(nothing_async, "process")),
    AHEAD: ("holdfast", ours(nothing, "power", 50)),
    "localqueue": ("localqueue", localqueue),
    "huey": ("huey", huey),
}
BESIDE = {"localqueue": PROCESS, "huey": POWER}
"""Each peer stands beside the one of ours that survives the same: localqueue syncs at checkpoints, huey at every commit."""


def in_process(name: str, jobs: int, concurrency: int, parent: str) -> float:
    """Jobs a second, in a fresh process and folder."""
    with tempfile.TemporaryDirectory(dir=parent) as folder, get_context("spawn").Pool(1) as pool:
        return jobs / pool.apply_async(run_named, (name, folder, jobs, concurrency)).get(PATIENCE_S)


def run_named(name: str, folder: str, jobs: int, concurrency: int) -> float:
    return CONTENDERS[name][1](Path(folder), jobs, concurrency)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few jobs, to see that it works")
    options.add_argument("--dir", default=tempfile.gettempdir(), help="where files are made")
    asked = options.parse_args()
    rounds, jobs = (1, 20) if asked.quick else (3, 2_000)
    present = [name for name, (package, _) in CONTENDERS.items() if find_spec(package)]
    for concurrency in (8,) if asked.quick else (1, 8, 50):
        rates: dict[str, list[float]] = {name: [] for name in present}
        for _ in range(rounds):
            for name in present:
                rates[name].append(in_process(name, jobs, concurrency, asked.dir))
        print(f"concurrency {concurrency}")
        for name, each in rates.items():
            own = BESIDE.get(name)
            ratio = median(mine / theirs for mine, theirs in zip(rates[own], each, strict=True)) if own else None
            print(f"  {name:<28} {median(each):>8,.0f} jobs/s" + (f"    {own}: {ratio:.2f} times that" if own else ""))
    for name in CONTENDERS.keys() - present:
        print(f"{name} is not installed, and left out")


if __name__ == "__main__":
    main()
