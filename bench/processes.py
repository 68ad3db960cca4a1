"""Several processes that claim and acknowledge on one file at once."""

import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

from msgspec import Struct

from bench import ours
from bench.measure import FRESH, Child, Figure, Run, at_least, at_most, compare
from bench.ours import LEASE_S, QUEUE, Durability
from bench.raw_sqlite import RawQueue
from holdfast.commands import Claim, Settle
from holdfast.connect import connect

PROCESSES = 4
FASTEST = 40_000
"""More cycles than this a second are not expected: so many messages are put for each second of work."""

START_S = 30.0
"""How long a process waits for the others to be ready."""


class Share(Struct, frozen=True):
    """What one process got done."""

    cycles: int
    elapsed_s: float
    longest_s: float
    """The longest that any of its commands took."""


def four_processes(run: Run) -> Iterator[Figure]:
    yield from _measured(run, "process")
    yield from _measured(run, "power")


def _measured(run: Run, durability: Durability) -> Iterator[Figure]:
    path = run.folder / f"shared_{durability}.db"
    raw_path = run.folder / f"raw_shared_{durability}.db"
    one: list[float] = []
    four: list[list[Share]] = []
    raw: list[list[Share]] = []
    for _ in run.rounds(f"processes, durability={durability}", run.sizes.process_rounds):
        one.append(total(cycle_in(1, work, path, durability, run.sizes.process_s)))
        four.append(cycle_in(PROCESSES, work, path, durability, run.sizes.process_s))
        raw.append(cycle_in(PROCESSES, raw_work, raw_path, durability, run.sizes.process_s))
    name = f"{PROCESSES} processes, durability={durability}"
    yield compare(f"claim+ack, {name}", [total(shares) for shares in four], one, beside="ours, one process", wanted=at_least(0.6))
    evenness = median([slowest_over_fastest(shares) for shares in four])
    raw_evenness = median([slowest_over_fastest(shares) for shares in raw])
    yield Figure(f"slowest over fastest, {name}", evenness, "", "raw, busy handler", raw_evenness, evenness, wanted=at_least(0.5))
    yield Figure(f"longest wait, {name}", longest_ms(four), "ms", "raw, busy handler", longest_ms(raw), wanted=at_most(200.0, "ours"))


def total(shares: list[Share]) -> float:
    return sum(share.cycles / share.elapsed_s for share in shares)


def slowest_over_fastest(shares: list[Share]) -> float:
    rates = [share.cycles / share.elapsed_s for share in shares]
    return min(rates) / max(*rates, 1e-9)


def longest_ms(rounds: list[list[Share]]) -> float:
    return 1e3 * max(share.longest_s for shares in rounds for share in shares)


def cycle_in(count: int, do: Callable[..., None], path: Path, durability: Durability, seconds: float) -> list[Share]:
    """What each of `count` processes got done in the same stretch of time."""
    start = FRESH.Barrier(count)
    do_fill = fill if do is work else raw_fill
    do_fill(path, durability, int(FASTEST * seconds))
    workers = [Child(do, path, durability, seconds, start) for _ in range(count)]
    shares = [worker.answer() for worker in workers]
    for worker in workers:
        worker.end()
    return shares


def fill(path: Path, durability: Durability, count: int) -> None:
    store = ours.open_file(path, durability)
    ours.drain(store)
    ours.fill(store, count)
    store.close()


def raw_fill(path: Path, durability: Durability, count: int) -> None:
    raw = RawQueue(path, durability)
    raw.sql.execute("delete from holdfast_messages")
    raw.put_batch(count)
    raw.sql.close()


def work(answers: Connection, path: Path, durability: Durability, seconds: float, start: Barrier) -> None:
    store = connect(f"sqlite:///{path.absolute()}?durability={durability}")

    def cycle(lap: Callable[[], None]) -> bool:
        messages = store.execute(Claim(QUEUE, "bench", LEASE_S)).messages
        lap()
        if messages:
            store.execute(Settle([messages[0].receipt]))
            lap()
        return bool(messages)

    start.wait(START_S)
    answers.send(share_of(cycle, seconds))
    store.close()


def raw_work(answers: Connection, path: Path, durability: Durability, seconds: float, start: Barrier) -> None:
    raw = RawQueue(path, durability)

    def cycle(lap: Callable[[], None]) -> bool:
        raw.cycle()
        lap()
        return True

    start.wait(START_S)
    answers.send(share_of(cycle, seconds))
    raw.sql.close()


def share_of(cycle: Callable[[Callable[[], None]], bool], seconds: float) -> Share:
    begun = last = time.perf_counter()
    longest = 0.0

    def lap() -> None:
        nonlocal last, longest
        now = time.perf_counter()
        longest, last = max(longest, now - last), now

    cycles = 0
    while last - begun < seconds and cycle(lap):
        cycles += 1
    return Share(cycles, last - begun or 1e-9, longest)
