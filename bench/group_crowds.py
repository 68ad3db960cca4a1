"""What groups cost where many processes claim at once: throughput on PostgreSQL, beside a plain queue, in turns.

    python bench/group_crowds.py

Each process claims and acknowledges one message at a time for some seconds. It also says for how long it was told again and again that
there is nothing, although there is.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the package `redis` would be a benchmark.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

from msgspec import Raw

from bench.before_after import STORES
from bench.measure import Figure, at_least, at_most, compare
from bench.report import print_table
from holdfast.commands import Claim, Clear, Configure, Item, Put, Settle
from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.stores import Store

VALUE = Raw(b'{"to":"someone@example.com"}')
QUEUES: dict[str, tuple[dict[str, object], int]] = {
    "plain": ({}, 0),
    "100 groups": ({"groups": "fair", "group_limit": 4}, 100),
    "one group": ({"groups": "fair"}, 1),
}
"""The settings of each queue, and how many groups it has."""


def work(url: str, queue: str, seconds: float) -> None:
    """Claim and acknowledge for so long; write how many, and the longest time without any in milliseconds."""
    store = connect(url)
    store.execute(Claim("nothing", "w", 60.0))
    sys.stdin.readline()
    start = last = time.monotonic()
    count, longest = 0, 0.0
    while time.monotonic() - start < seconds:
        messages = store.execute(Claim(queue, "w", 60.0)).messages
        if messages:
            store.execute(Settle([messages[0].receipt]))
            count += 1
            last = time.monotonic()
        else:
            longest = max(longest, time.monotonic() - last)
    store.close()
    print(count, 1000 * longest)


def fill(store: Store, queue: str, count: int, groups: int) -> None:
    store.execute(Clear("queue", queue))
    for start in range(0, count, 10_000):
        numbers = range(start, min(count, start + 10_000))
        store.execute(Put(queue, [Item(new_id(), VALUE, group=f"g{number % groups}" if groups else None) for number in numbers]))


def crowd(url: str, queue: str, processes: int, seconds: float) -> tuple[float, float]:
    """Messages in a second, and the longest that one process was told that there is nothing, in milliseconds."""
    command = [sys.executable, str(Path(__file__).resolve()), "--work", url, queue, str(seconds)]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    time.sleep(5.0)  # Until all have begun.
    for process in started:
        if process.stdin is not None:
            process.stdin.write("\n")
            process.stdin.flush()
    said = [process.communicate()[0].split() for process in started]
    return sum(int(count) for count, _ in said) / seconds, max(float(longest) for _, longest in said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=20_000, help="more than are claimed in a round")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work[0], options.work[1], float(options.work[2]))
        return 0
    rates: dict[str, list[float]] = {queue: [] for queue in QUEUES}
    waits = dict.fromkeys(QUEUES, 0.0)
    with STORES["postgres"]() as places:
        url, _ = places[1]
        store = connect(url)
        for queue, (settings, _) in QUEUES.items():
            store.execute(Configure("queue", queue, **settings))  # type: ignore[arg-type] # the settings of a queue
        for _ in range(options.rounds):
            for queue, (_, groups) in QUEUES.items():
                fill(store, queue, options.messages, groups)
                rate, longest = crowd(url, queue, options.processes, options.seconds)
                rates[queue].append(rate)
                waits[queue] = max(waits[queue], longest)
        store.close()
    figures = [
        compare("100 groups", rates["100 groups"], rates["plain"], unit="/s", beside="plain", wanted=at_least(0.6)),
        compare("one group", rates["one group"], rates["plain"], unit="/s", beside="plain", wanted=at_least(0.4)),
        *(Figure(f"{queue}: longest without a message", waits[queue], "ms", wanted=at_most(100, "ours")) for queue in QUEUES),
    ]
    print_table({"postgres": figures}, [f"{options.processes} processes, wall time, in turns."], is_judged=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
