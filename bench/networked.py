"""What the measurements of the networked stores share: how a run goes, our verbs on a URL, and how soon a put wakes a waiting claim."""

import argparse
import os
import platform
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from msgspec import Raw, json

from bench.measure import QUICK, Child, Figure, Run, Sizes, at_most
from bench.ours import LEASE_S, QUEUE, VALUE
from bench.report import print_table, write_json
from holdfast._sync.flows.claiming import claim
from holdfast.commands import Claim, Item, Put, Settle
from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.records import Message
from holdfast.stores import Store

BODY = Raw(VALUE)

Groups = Mapping[str, Callable[[Run, str], Iterator[Figure]]]
"""What is measured on the URL of a server, by name."""


def run_on(server: AbstractContextManager[str], groups: Groups, missing: Sequence[str], about: str | None) -> int:
    """Measure what the command line asks for, and print it; a measurement that breaks fails the run, after the others."""
    options = parse(groups, about)
    sizes = QUICK if options.quick else Sizes()
    begun, load = time.monotonic(), os.getloadavg()[0]
    figures: dict[str, list[Figure]] = {}
    broken: list[str] = []
    with server as url:
        for name in options.only or groups:
            figures[name] = []
            try:
                figures[name].extend(groups[name](Run(Path(), sizes, tell, options.peer), url))
            except Exception:  # noqa: BLE001 - the other measurements are worth having
                broken.append(f"{name} broke: {traceback.format_exc()}")
    notes = [
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {load:.1f} before.",
        f"It took {time.monotonic() - begun:.0f} s. Read ratios, not absolutes.",
        f"Not installed here and so left out: {', '.join(missing) or 'nobody'}.",
        *broken,
    ]
    print_table(figures, notes, is_judged=sizes.judged)
    if options.json:
        write_json(options.json, figures, notes, is_judged=sizes.judged)
    return 1 if broken else 0


def parse(groups: Groups, about: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--only", action="append", choices=list(groups), help="measure only this group; may be given several times")
    parser.add_argument("--peer", action="append", metavar="NAME", help="measure only beside this peer; may be given several times")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; nothing is judged")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    return parser.parse_args()


def tell(text: str) -> None:
    """Show what is going on."""
    if text:
        print(text, file=sys.stderr, flush=True)


class OurQueue:
    """Our verbs on a queue; each says how many messages it was done with."""

    def __init__(self, url: str) -> None:
        self._store: Store = connect(url)

    def put(self, size: int) -> int:
        self._store.execute(Put(QUEUE, [Item(new_id(), self.body()) for _ in range(size)]))
        return size

    def body(self) -> Raw:
        return BODY

    def cycle(self, size: int) -> int:
        messages = self.claim(size)
        self.settle(messages)
        return len(messages)

    def claim(self, size: int) -> list[Message]:
        return self._store.execute(Claim(QUEUE, "bench", LEASE_S, size)).messages

    def settle(self, messages: list[Message]) -> None:
        if messages:
            self._store.execute(Settle([message.receipt for message in messages]))

    def close(self) -> None:
        self._store.close()


def waking(run: Run, url: str) -> Iterator[Figure]:
    """From a put to the claim of a process that waits on an idle queue."""
    run.tell(f"wake-up: {run.sizes.wakeups} times")
    waiter = Child(wait_and_claim, url, run.sizes.wakeups)
    waiter.answer()
    store = connect(url)
    for _ in range(run.sizes.wakeups):
        time.sleep(random.uniform(0.005, 0.02))
        store.execute(Put("wakeup", [Item(new_id(), Raw(json.encode(time.monotonic_ns())))]))
    latencies_ms: list[float] = waiter.answer()
    waiter.end()
    store.close()
    yield Figure("put to claimed in another process, median", median(latencies_ms), "ms", wanted=at_most(5.0, "ours"))


def wait_and_claim(answers: Connection, url: str, times: int) -> None:
    """Claim whatever comes, and say how long ago it was put: the monotonic clock is one for all processes."""
    store = connect(url)
    claim(store, Claim("wakeup", "bench", LEASE_S), 0.2)
    answers.send("ready")
    latencies_ms = []
    for _ in range(times):
        (message,) = claim(store, Claim("wakeup", "bench", LEASE_S), 60.0)
        latencies_ms.append((time.monotonic_ns() - json.decode(message.value)) / 1e6)
        store.execute(Settle([message.receipt]))
    answers.send(latencies_ms)
    store.close()
