"""Two sides of a server, cell by cell: so many messages at a time by so many processes, or by a worker that runs so many jobs at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from bench.crews import Crew, What
from bench.measure import Figure, Run, Wanted, compare, in_fresh_process

SIZES = (1, 10, 100)
VERBS: Mapping[What, str] = {"put": "put", "cycle": "claim+ack"}

Work = Callable[[str, int, int], float]
"""Jobs a second, of so many, of a worker on the URL that runs so many at once."""


class Pair(Struct, frozen=True):
    """Our crew and another, and how they are compared."""

    name: str
    ours: Crew
    theirs: Crew
    rounds: int
    wanted: Wanted
    sizes: Sequence[int] = SIZES


def compare_cells(run: Run, pair: Pair, verbs: Sequence[What]) -> Iterator[Figure]:
    """Each cell in turns, round by round."""
    for number in run.sizes.crews:
        for size in pair.sizes:
            rates: dict[What, tuple[list[float], list[float]]] = {verb: ([], []) for verb in verbs}
            for _ in run.rounds(f"{pair.name}: {workers(number)}, {size} at a time", pair.rounds):
                for side, crew in enumerate((pair.ours, pair.theirs)):
                    for verb, found in rates.items():
                        found[side].append(crew.rate(number, verb, size, run.sizes.cell_s))
                    crew.drain()
            for verb, (mine, others) in rates.items():
                yield compare(f"{VERBS[verb]}, {size} at a time, {workers(number)}", mine, others, beside=pair.name, wanted=pair.wanted)


def compare_work(run: Run, url: str, pair: Pair, work: Work) -> Iterator[Figure]:
    """Jobs a second of a worker that runs so many at once, beside so many of our processes, one message at a time."""
    for number in run.sizes.crews:
        mine, others = [], []
        for _ in run.rounds(f"{pair.name}: a worker that runs {number} at once", pair.rounds):
            pair.ours.rate(number, "put", 1, run.sizes.cell_s)
            mine.append(pair.ours.rate(number, "cycle", 1, run.sizes.cell_s))
            pair.ours.drain()
            pair.theirs.rate(number, "put", 100, run.sizes.cell_s)
            others.append(in_fresh_process(work, url, run.sizes.peer_jobs, number))
        yield compare(f"claim+ack, {workers(number)}", mine, others, beside=pair.name, wanted=pair.wanted)


def workers(number: int) -> str:
    return "1 worker" if number == 1 else f"{number} workers"
