"""One hostile client beside ten honest ones: what their operations take with it and without it, and the memory of the server.

    python bench/hostile.py                       # SQLite, PostgreSQL and Redis, two minutes of attack each
    python bench/hostile.py --quick               # whether it works
    python bench/hostile.py --store sqlite --attack h8 --seconds 20 --json figures.json

A real `holdfast serve` serves the store, with tokens. The honest clients work at a steady pace, well below what the server can do; slices
without and with the attack take turns, so that what else happens on the machine disturbs both alike. The attack is a process of its own
that gives way to every other (nice 19): its own cost of sending must not count as what the server lets it do. What the server and the
database spend on it counts. Linux only: it reads /proc.

Where there are few cores, the attack slows others down by using them, whatever it attacks. `--control` measures that too: the same attack
on another server of the same machine. And the notes say for how much of the time the server was ready to run and no core was free: where
that is much without an attack, other work disturbs the figures.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import uvloop
from msgspec import Raw, Struct, json

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the package `redis` would be the file beside this one.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

from bench.hostile_attacks import ATTACKS, MIB
from bench.hostile_honest import WORK, Honest, Times
from bench.http import SERVE, free_port, listens, wait_until
from bench.measure import Figure, at_most
from bench.report import print_table, write_json
from holdfast.commands import Change, Configure, Item, Put, Write
from holdfast.connect import connect
from holdfast.ids import new_id
from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from holdfast.stores import Store
from holdfast.testing import servers

STORES = ("sqlite", "postgres", "redis")
TIMES = 3.0
RSS_MIB = 500.0
CALM_S = 2.0
HONEST = 10


class Sizes(Struct, frozen=True):
    """How much of everything."""

    seconds: float = 120.0
    slices: int = 4
    backlog: int = 20_000
    large: int = 150
    judged: bool = True
    control: bool = False


QUICK = Sizes(2.0, 1, 200, 5, judged=False)


class Outcome(Struct):
    """What was measured on one store."""

    without: Times
    beside: Times
    control: Times
    errors: list[str]
    peak_mib: float
    answers: dict[str, int]
    log: str
    core_waits: dict[str, list[float]]
    """For which part of each slice the server was ready to run, and had no core."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--store", action="append", choices=STORES)
    parser.add_argument("--attack", action="append", choices=list(ATTACKS), help="only this one; may be repeated")
    parser.add_argument("--seconds", type=float, help="how long the attack lasts in all")
    parser.add_argument("--control", action="store_true", help="also beside the same attack on another server")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sizes = QUICK if given.quick else Sizes(given.seconds or Sizes().seconds, control=given.control)
    groups: dict[str, list[Figure]] = {}
    notes: list[str] = []
    for kind in given.store or STORES:
        with tempfile.TemporaryDirectory() as folder, opened(kind, Path(folder)) as url:
            outcome = measure(url, Path(folder), sizes, given.attack or list(ATTACKS))
        groups[kind] = figures(kind, outcome)
        notes += [f"{kind}: {what}" for what in told(outcome)]
    print_table(groups, notes, is_judged=sizes.judged)
    if given.json is not None:
        write_json(given.json, groups, notes, is_judged=sizes.judged)


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty store."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/store.db"
    elif kind == "postgres":
        with servers.postgres() as url:
            yield f"{url}?schema={quote('hostile ' + new_id())}"
    else:
        with servers.redis() as url:
            yield f"{url}?prefix=hostile-{new_id()}"


def measure(url: str, folder: Path, sizes: Sizes, attacks: Sequence[str]) -> Outcome:
    """Serve the store, and let the slices take turns."""
    store = connect(url)
    prepare(store, sizes)
    honest = [token(store, "*") for _ in range(HONEST)]
    victim = Victim(free_port(), *attackers_tokens(store))
    store.close()
    outcome = Outcome(defaultdict(list), defaultdict(list), defaultdict(list), [], 0.0, {}, "", defaultdict(list))
    log = folder / "log"
    with serving(url, victim.port, log) as server, another(folder, sizes) as other:

        def slice_of(kind: str, times: Times) -> None:
            before = core_wait_s(server.pid)
            work(victim.port, honest, sizes.seconds / sizes.slices, times, outcome.errors)
            outcome.core_waits[kind].append((core_wait_s(server.pid) - before) / (sizes.seconds / sizes.slices))

        work(victim.port, honest, 1.0, defaultdict(list), outcome.errors)  # What happens once is not measured.
        for _ in range(sizes.slices):
            slice_of("without", outcome.without)
            for attacked, kind, times in ((victim, "beside", outcome.beside), (other, "control", outcome.control)):
                if attacked is not None:
                    with attacking(attacked, sizes.seconds / sizes.slices + 2.0, attacks) as attack:
                        slice_of(kind, times)
                        answers = json.decode(attack.communicate()[0] or b"{}", type=dict[str, int])
                    time.sleep(CALM_S)
                    if attacked is victim:
                        outcome.answers = dict(Counter(outcome.answers) + Counter(answers))
        outcome.peak_mib = peak_mib(server.pid)
    outcome.log = log.read_text()
    return outcome


class Victim(Struct, frozen=True):
    """A server to attack, and the tokens for it."""

    port: int
    read: str
    claim: str


def attackers_tokens(store: Store) -> tuple[str, str]:
    return token(store, "queue:hostile-*:read", "dict:hostile-*:read"), token(store, "queue:hostile-q:claim")


@contextmanager
def another(folder: Path, sizes: Sizes) -> Iterator[Victim | None]:
    """Another server, on an SQLite database of its own, for the control."""
    if not sizes.control:
        yield None
        return
    url = f"sqlite:///{folder}/other.db"
    store = connect(url)
    prepare(store, sizes)
    other = Victim(free_port(), *attackers_tokens(store))
    store.close()
    with serving(url, other.port, folder / "other log"):
        yield other


def prepare(store: Store, sizes: Sizes) -> None:
    """What the attacker may read, and what the honest ones work on."""
    large = Raw(json.encode("x" * (MIB - 100)))
    for first in range(0, sizes.backlog, 1_000):
        names = range(first, min(first + 1_000, sizes.backlog))
        for queue in ("hostile-q", WORK):
            store.execute(Put(queue, [Item(f"{queue}-{number}", Raw(b"1")) for number in names]))
    for number in range(sizes.large):
        store.execute(Put("hostile-big", [Item(str(number), large)]))
        store.execute(Write("hostile-log", [Change(f'"{number % 10}"', value=large)]))
    store.execute(Configure("dict", "watched"))


def token(store: Store, *scopes: str) -> str:
    return create_token(store, "bench", scopes, by=Actor("bench", "here"))[1]


@contextmanager
def serving(url: str, port: int, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A server process, while the block runs."""
    with log.open("wb") as written:
        server = subprocess.Popen([sys.executable, "-c", SERVE, "serve", f"--url={url}", f"--port={port}"], stderr=written)
        try:
            wait_until(lambda: listens(port))
            yield server
        finally:
            server.terminate()
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def work(port: int, tokens: Sequence[str], seconds: float, times: Times, errors: list[str]) -> None:
    """A slice of honest work."""

    async def working() -> Honest:
        honest = Honest(port, tokens)
        await honest.run(seconds)
        return honest

    honest = uvloop.run(working())
    errors += honest.errors
    for kind, taken in honest.times.items():
        times[kind] += taken


@contextmanager
def attacking(victim: Victim, seconds: float, attacks: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """The hostile client, while the block runs."""
    program = Path(__file__).with_name("hostile_attacks.py")
    arguments = [str(victim.port), str(seconds), victim.read, victim.claim, *attacks]
    with subprocess.Popen([sys.executable, program, *arguments], stdout=subprocess.PIPE) as attack:
        try:
            time.sleep(1.0)  # It makes its bodies, and begins.
            yield attack
        finally:
            attack.kill()


def figures(kind: str, outcome: Outcome) -> list[Figure]:
    """The slowest hundredth of each kind of operation, and what the server took at most."""
    lines = [line(f"{kind}: {what}", outcome.without[what], outcome.beside[what]) for what in sorted(outcome.without)]
    without, beside, control = (together(times) for times in (outcome.without, outcome.beside, outcome.control))
    lines.append(line(f"{kind}: all", without, beside))
    if control:
        other = percentile(control, 0.99)
        alone = percentile(without, 0.99)
        lines.append(Figure(f"{kind}: all, p99 beside an attack on another server", other, "ms", "without", alone, other / alone))
    lines.append(Figure(f"{kind}: failed honest requests", len(outcome.errors), "", wanted=at_most(0, "ours")))
    lines.append(Figure(f"{kind}: memory of the server", outcome.peak_mib, "MiB", wanted=at_most(RSS_MIB, "ours")))
    lines.append(Figure(f"{kind}: tracebacks in its log", outcome.log.count("Traceback"), "", wanted=at_most(0, "ours")))
    return lines


def line(what: str, without: list[float], beside: list[float]) -> Figure:
    alone, other = percentile(without, 0.99), percentile(beside, 0.99)
    p50 = f"p50 {percentile(without, 0.5):.1f} and {percentile(beside, 0.5):.1f}"
    return Figure(f"{what}, p99 ({p50})", other, "ms", "without", alone, other / alone, None, at_most(TIMES))


def together(times: Times) -> list[float]:
    return [taken for each in times.values() for taken in each]


def percentile(times: list[float], part: float) -> float:
    return sorted(times)[int(len(times) * part)] * 1_000 if times else float("nan")


def told(outcome: Outcome) -> list[str]:
    said = [f"attacks {json.encode(outcome.answers).decode()}"]
    waits = ", ".join(f"{sum(parts) / len(parts):.0%} {kind}" for kind, parts in outcome.core_waits.items())
    said.append(f"the server waited for a core for {waits} of the time")
    said += [f"logged{traceback[-1_500:]}" for traceback in re.findall(r"Traceback.*?\n(?=\S)[^\n]*", outcome.log, re.DOTALL)[:1]]
    return said + [f"failed {error}" for error in outcome.errors[:5]]


def core_wait_s(pid: int) -> float:
    """For how long the main thread of a process was ready to run, and waited for a core."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def peak_mib(pid: int) -> float:
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) / 1_024


if __name__ == "__main__":
    main()
