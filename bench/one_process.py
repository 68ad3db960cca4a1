"""One process, one thread, on a file that survives the death of the process: puts and cycles, single and in batches."""

from collections.abc import Iterator
from functools import partial
from statistics import median

from bench import ours, peers
from bench.measure import Figure, Run, at_least, by_cpu, compare, interleave
from bench.raw_sqlite import RawQueue


def beside_raw(run: Run) -> Iterator[Figure]:
    sizes = run.sizes
    store, raw = ours.open_file(run.folder / "ours.db"), RawQueue(run.folder / "raw.db")
    singles = interleave(
        run,
        "one process, single",
        {
            "ours": lambda: ours.singles(store, sizes.messages, sizes.messages),
            "raw": lambda: raw.singles(sizes.messages, sizes.messages),
        },
    )
    yield from compared("", singles, {"put": 0.45, "claim+ack": 0.5})
    batches = interleave(
        run,
        "one process, batches",
        {"ours": lambda: ours.batches(store, sizes.batches), "raw": lambda: raw.batches(sizes.batches)},
    )
    yield from compared("batches of 100: ", batches, {"put": 0.35, "claim+ack": 0.45})
    store.close()
    raw.sql.close()


def compared(prefix: str, rates: dict[str, dict[str, list[float]]], wanted: dict[str, float]) -> Iterator[Figure]:
    for what, bound in wanted.items():
        yield compare(prefix + what, rates["ours"][what], rates["raw"][what], wanted=at_least(bound))
        cpu = by_cpu(what)
        yield compare(prefix + cpu, rates["ours"][cpu], rates["raw"][cpu])


def beside_peers(run: Run) -> Iterator[Figure]:
    """All with the same messages waiting: some peers look at each of them for every claim."""
    puts, cycles = run.sizes.peer_messages, run.sizes.peer_cycles
    names = peers.installed()
    if not names:
        return
    store = ours.open_file(run.folder / "beside_peers.db")
    contenders = {name: partial(peers.singles, name, run.folder, puts, cycles) for name in names}
    rates = interleave(run, "peers", {"ours": lambda: ours.singles(store, puts, cycles), **contenders}, run.sizes.peer_rounds)
    store.close()
    best = max(names, key=lambda name: median(rates[name]["claim+ack"]))
    for name in names:
        yield compare(f"put, {puts:,} waiting", rates["ours"]["put"], rates[name]["put"], beside=name)
    for name in names:
        wanted = at_least(2.5) if name == best else None
        yield compare(f"claim+ack, {puts:,} waiting", rates["ours"]["claim+ack"], rates[name]["claim+ack"], beside=name, wanted=wanted)
        cpu = by_cpu("claim+ack")
        yield compare(f"{cpu}, {puts:,} waiting", rates["ours"][cpu], rates[name][cpu], beside=name)
