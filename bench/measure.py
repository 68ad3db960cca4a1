"""How a cost is measured: contenders take turns, round by round, and only ratios of one round are judged."""

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Literal

from msgspec import Struct

Rates = dict[str, float]
"""Operations a second, by what was done."""

FRESH = get_context("spawn")
"""Makes processes that inherit nothing."""

PATIENCE_S = 300.0
"""How long a process may take until it answers."""


class Sizes(Struct, frozen=True):
    """How much is done; the defaults are a full run."""

    rounds: int = 9
    messages: int = 2_000
    batches: int = 60
    peer_rounds: int = 3
    peer_messages: int = 2_000
    peer_cycles: int = 300
    peer_jobs: int = 300
    power_messages: int = 300
    power_cycles: int = 150
    thread_puts: int = 250
    task_puts: int = 150
    process_rounds: int = 3
    process_s: float = 2.0
    crews: tuple[int, ...] = (1, 4, 16)
    cell_s: float = 0.5
    memory: tuple[int, ...] = (1_000, 100_000, 1_000_000)
    memory_rounds: int = 3
    few_ready: int = 1_000
    many_ready: int = 1_000_000
    flat_cycles: int = 200
    attempts: int = 2_000
    waiters: int = 1_000
    wakeups: int = 200
    idle_s: float = 5.0
    starts: int = 11
    swaps: int = 2_000
    judged: bool = True
    """Whether the figures mean anything: those of a quick run do not."""


QUICK = Sizes(
    rounds=2,
    messages=40,
    batches=2,
    peer_rounds=1,
    peer_messages=10,
    peer_cycles=5,
    peer_jobs=10,
    power_messages=10,
    power_cycles=5,
    thread_puts=3,
    task_puts=3,
    process_rounds=1,
    process_s=0.1,
    crews=(1, 2),
    cell_s=0.02,
    memory=(50, 200),
    memory_rounds=1,
    few_ready=20,
    many_ready=400,
    flat_cycles=5,
    attempts=30,
    waiters=10,
    wakeups=5,
    idle_s=0.2,
    starts=1,
    swaps=20,
    judged=False,
)


class Run(Struct, frozen=True):
    """What every measurement is given: where to keep its files, how much to do and whom to tell."""

    folder: Path
    sizes: Sizes
    tell: Callable[[str], None]
    peers: Sequence[str] | None = None

    def wants(self, peer: str) -> bool:
        """Whether it was asked for: by its name, or with all others."""
        return self.peers is None or peer in self.peers

    def rounds(self, what: str, count: int | None = None) -> Iterator[int]:
        """The numbers of the rounds, each told as it begins, on a tidied heap."""
        count = count or self.sizes.rounds
        for number in range(count):
            self.tell(f"{what}: round {number + 1} of {count}")
            gc.collect()
            yield number


class Wanted(Struct, frozen=True):
    """A threshold."""

    sign: Literal["≥", "≤"]
    bound: float
    of: Literal["ratio", "ours"] = "ratio"

    def is_met(self, value: float) -> bool:
        return value >= self.bound if self.sign == "≥" else value <= self.bound

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g}"


class Figure(Struct, frozen=True):
    """One line of the report; without `wanted` it only informs."""

    what: str
    ours: float
    unit: str
    beside: str = ""
    other: float | None = None
    ratio: float | None = None
    best: float | None = None
    """The ratio of the best rounds of both."""
    wanted: Wanted | None = None

    @property
    def is_met(self) -> bool | None:
        """None where nothing is wanted."""
        value = self.ratio if self.wanted and self.wanted.of == "ratio" else self.ours
        return None if self.wanted is None or value is None else self.wanted.is_met(value)


def compare(
    what: str, ours: list[float], others: list[float], *, unit: str = "/s", beside: str = "raw", wanted: Wanted | None = None
) -> Figure:
    """Medians side by side; the ratio is the median of the rounds' own, since what disturbs a round disturbs neighbours alike."""
    ratio = median([mine / other for mine, other in zip(ours, others, strict=True)])
    best_of = max if unit == "/s" else min
    return Figure(what, median(ours), unit, beside, median(others), ratio, best_of(ours) / best_of(others), wanted)


def at_least(bound: float) -> Wanted:
    return Wanted("≥", bound)


def at_most(bound: float, of: Literal["ratio", "ours"] = "ratio") -> Wanted:
    return Wanted("≤", bound, of)


def interleave(
    run: Run, what: str, contenders: Mapping[str, Callable[[], Rates]], rounds: int | None = None
) -> dict[str, dict[str, list[float]]]:
    """Let all contenders do a round, then all another: rates by contender and by what was done."""
    rates: dict[str, dict[str, list[float]]] = {name: {} for name in contenders}
    for _ in run.rounds(what, rounds):
        for name, do in contenders.items():
            for done, rate in do().items():
                rates[name].setdefault(done, []).append(rate)
    return rates


class Timer(Struct):
    """How long a block took, by the clock and of this process's CPU time."""

    elapsed_s: float = 0.0
    cpu_s: float = 0.0


@contextmanager
def timed() -> Iterator[Timer]:
    """Time a block."""
    timer = Timer()
    start, cpu_start = time.perf_counter(), time.process_time()
    yield timer
    timer.elapsed_s, timer.cpu_s = time.perf_counter() - start, time.process_time() - cpu_start


def rates_of(what: str, count: int, do: Callable[[], object], each: int = 1) -> Rates:
    """How often a second `do` can be done, of `count` times, each of which counts as `each`."""
    with timed() as timer:
        for _ in range(count):
            do()
    return {what: each * count / timer.elapsed_s, by_cpu(what): each * count / timer.cpu_s}


def by_cpu(what: str) -> str:
    """The name of the same, in CPU time: without the waits for the disk, and for others on a busy machine."""
    return f"{what}, of CPU time"


class Child:
    """A new process that runs a function: its heap and its garbage collector know of nobody else's things.

    The function's first argument is the pipe on which it answers.
    """

    def __init__(self, do: Callable[..., None], *arguments: object) -> None:
        self._answers, sender = FRESH.Pipe(duplex=False)
        self._process = FRESH.Process(target=do, args=(sender, *arguments), daemon=True)
        self._process.start()
        # Only the child has it now, so that its death is seen.
        sender.close()

    def answer(self) -> Any:
        """The next thing that it says. Raises if it died or says nothing for too long."""
        if not self._answers.poll(PATIENCE_S):
            self._process.kill()
            message = f"a process said nothing for {PATIENCE_S:g} s and was ended"
            raise TimeoutError(message)
        return self._answers.recv()

    def end(self) -> None:
        """Wait for it to end, or end it."""
        self._process.join(10.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def in_fresh_process(do: Callable[..., Any], *arguments: object) -> Any:
    """The answer of a function that a new process runs."""
    child = Child(_send_answer, do, arguments)
    try:
        return child.answer()
    finally:
        child.end()


def _send_answer(answers: Connection, do: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    answers.send(do(*arguments))
    # Nobody waits for the threads that a library leaves behind.
    os._exit(0)
