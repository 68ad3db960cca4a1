"""CPU time of plain calls before and after a change: two source trees take turns on every store, and each call's cost is compared.

    git worktree add --detach ../before v0.1.0
    python bench/before_after.py ../before .

Each tree runs in a process of its own, on a store of its own; the packages that both need are those of this interpreter. CPU time is less
disturbed by other programs than time by the clock; pass one tree twice to see how much it is disturbed all the same. It also compares puts
with `max_attempts` to plain ones, of the second tree.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the package `redis` would be a benchmark.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

import psycopg
import redis
from msgspec import Struct, json

from bench.measure import Figure, Wanted, at_most, compare
from bench.report import print_table, write_json
from holdfast.testing import servers

CHILD = Path(__file__).with_name("before_after_calls.py")
CALLS = {
    "put": 1,
    "claim": 1,
    "ack": 1,
    "put with max_attempts": 1,
    "put with metadata": 1,
    "put with key": 1,
    "put 100": 100,
    "claim 100": 100,
    "ack 100": 100,
    "put 100 with max_attempts": 100,
    "write": 1,
    "lock + unlock": 1,
}
"""What is measured, and how many messages, entries or leases each call is about."""

LIMITS = {"put with max_attempts": "put", "put 100 with max_attempts": "put 100"}
"""Calls that may cost at most `MAX_ATTEMPTS` times as much as others."""
MAX_ATTEMPTS = 1.2

MESSAGES = {"memory": 2_000, "http": 200}
"""So many messages of a store are measured at a time; the others have `FEW`."""
FEW = 400

ServerTime = Callable[[], float]
"""CPU seconds so far of the server that a tree uses."""


SETTLED_S = 2.2
"""The folder of wake-ups that a lock makes is read at every commit while it is newer, which costs as much as a third of a lock on files."""

Places = list[tuple[str, ServerTime | None]]
"""The URL of each tree's store, and its server's time if it has one."""


class Costs(Struct):
    """Microseconds of CPU time per message, by call: one for each round."""

    client: dict[str, list[float]]
    server: dict[str, list[float]]

    def sums(self, call: str) -> list[float]:
        server = self.server.get(call) or [0.0] * len(self.client[call])
        return [sum(pair) for pair in zip(self.client[call], server, strict=True)]


class Tree:
    """A process that runs the calls of one source tree, and what they cost."""

    def __init__(self, source: Path, url: str, server_s: ServerTime | None) -> None:
        environment = os.environ | {"PYTHONPATH": str(source / "src")}
        # With -P, since in this folder the package `redis` would be a benchmark.
        command = [sys.executable, "-P", str(CHILD), url]
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._server_s = server_s
        self.costs = Costs({call: [] for call in CALLS}, {call: [] for call in CALLS} if server_s else {})

    def measure(self, call: str, messages: int) -> None:
        before = self._server_s() if self._server_s else 0.0
        cost_s = self.ask(call, messages)
        self.costs.client[call].append(1e6 * cost_s / messages)
        if self._server_s:
            self.costs.server[call].append(1e6 * (self._server_s() - before) / messages)

    def ask(self, call: str, messages: int) -> float:
        """Make the calls; the CPU seconds that they took in the process."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin  # noqa: S101 - pipes, as asked for
        assert stdout  # noqa: S101
        stdin.write(json.encode([call, messages]) + b"\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            message = f"the process of a tree ended during {call!r}; see above"
            raise RuntimeError(message)
        return json.decode(line, type=float)

    def end(self) -> None:
        self._process.communicate(timeout=60)


def cpu_seconds(pids: Sequence[int]) -> float:
    """What the main threads of processes have used so far, to the nanosecond."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) for pid in pids) / 1e9


@contextmanager
def in_files(scheme: str) -> Iterator[Places]:
    with TemporaryDirectory() as folder:
        yield [(f"{scheme}:///{folder}/{name}?durability=process", None) for name in ("before", "after")]


@contextmanager
def in_process(url: str) -> Iterator[Places]:
    yield [(url, None)] * 2


@contextmanager
def on_redis() -> Iterator[Places]:
    with servers.redis() as url, redis.Redis.from_url(url) as client:
        pid = client.info("server")["process_id"]
        base = url.rpartition("/")[0]
        yield [(f"{base}/{number}", partial(cpu_seconds, [pid])) for number in (0, 1)]


@contextmanager
def on_postgres() -> Iterator[Places]:
    """A database for each tree; its server's time is that of the sessions in this database."""
    with servers.postgres() as url, psycopg.connect(url, autocommit=True) as connection:

        def server_s(database: str) -> float:
            query = "select pid from pg_stat_activity where datname = %s"
            return cpu_seconds([pid for (pid,) in connection.execute(query, [database])])

        for name in ("before", "after"):
            connection.execute(f"create database {name}")
        base = url.rpartition("/")[0]
        yield [(f"{base}/{name}", partial(server_s, name)) for name in ("before", "after")]


STORES: dict[str, Callable[[], AbstractContextManager[Places]]] = {
    "memory": partial(in_process, "memory://"),
    "sqlite": partial(in_files, "sqlite"),
    "lmdb": partial(in_files, "lmdb"),
    "redis": on_redis,
    "postgres": on_postgres,
    "http": partial(in_process, "http"),
}


FILES = ("sqlite", "lmdb")


def measure(store: str, sources: tuple[Path, Path], rounds: int, messages: int) -> tuple[Costs, Costs]:
    """What the calls of both trees cost on a store."""
    with ExitStack() as stack:
        places = stack.enter_context(STORES[store]())
        trees = [Tree(source, url, server_s) for source, (url, server_s) in zip(sources, places, strict=True)]
        for tree in trees:
            stack.callback(tree.end)
        for call in CALLS:
            for tree in trees:
                tree.ask(call, messages)
        if store in FILES:
            time.sleep(SETTLED_S)
        for number in range(rounds):
            print(f"{store}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            for call in CALLS:
                for tree in trees if number % 2 else reversed(trees):
                    tree.measure(call, messages)
    return trees[0].costs, trees[1].costs


def figures(before: Costs, after: Costs, store: str, wanted: Wanted) -> Iterator[Figure]:
    for call in CALLS:
        what = f"{store}: {call}"
        yield compare(f"{what}, client", after.client[call], before.client[call], unit="µs", beside="before", wanted=wanted)
        if after.server:
            yield compare(f"{what}, server", after.server[call], before.server[call], unit="µs", beside="before", wanted=wanted)
    for call, plain in LIMITS.items():
        yield compare(f"{store}: {call}", after.sums(call), after.sums(plain), unit="µs", beside=plain, wanted=at_most(MAX_ATTEMPTS))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a source tree")
    parser.add_argument("after", type=Path, help="another one")
    parser.add_argument("--store", action="append", choices=list(STORES), help="measure only this one; may be given several times")
    parser.add_argument("--rounds", type=int, default=12, help="how often each tree makes each call (default: 12)")
    parser.add_argument("--most", type=float, default=1.03, help="the highest ratio that is not marked (default: 1.03)")
    parser.add_argument("--quick", action="store_true", help="two small rounds, to see that everything runs; nothing is judged")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    groups: dict[str, list[Figure]] = {}
    for store in options.store or STORES:
        messages = 100 if options.quick else MESSAGES.get(store, FEW)
        before, after = measure(store, (options.before, options.after), 2 if options.quick else options.rounds, messages)
        groups[store] = list(figures(before, after, store, at_most(options.most)))
    notes = [
        "CPU time per message. The ratio is the median of the rounds' own; 'at best' compares the best rounds.",
        f"{options.rounds} rounds, load average {os.getloadavg()[0]:.1f} at the end.",
    ]
    print_table(groups, notes, is_judged=not options.quick)
    if options.json:
        write_json(options.json, groups, notes, is_judged=not options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
