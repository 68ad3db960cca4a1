"""Compare-and-set of a dict's entry, one after the other."""

from collections.abc import Iterator

from msgspec import Raw

from bench import ours
from bench.measure import Figure, Rates, Run, compare, interleave, timed
from bench.ours import Durability
from bench.raw_sqlite import RawQueue
from holdfast.commands import Change, Write
from holdfast.stores import Store

DICT, KEY = "flags", '"key"'


def swaps(run: Run) -> Iterator[Figure]:
    yield from _measured(run, "process", run.sizes.swaps)
    yield from _measured(run, "power", max(1, run.sizes.swaps // 10))


def _measured(run: Run, durability: Durability, count: int) -> Iterator[Figure]:
    store = ours.open_file(run.folder / f"swaps_{durability}.db", durability)
    store.execute(Write(DICT, [Change(KEY, value=Raw(b"0"))]))
    raw = RawQueue(run.folder / f"raw_swaps_{durability}.db", durability)
    raw.sql.execute("insert into holdfast_entries (dict, key, revision, fence, value) values (?, ?, 1, 0, ?)", (DICT, KEY, b"0"))
    rates = interleave(
        run, f"compare-and-set, durability={durability}", {"ours": lambda: our_swaps(store, count), "raw": lambda: raw_swaps(raw, count)}
    )
    store.close()
    raw.sql.close()
    yield compare(f"compare-and-set, durability={durability}", rates["ours"]["swap"], rates["raw"]["swap"])


def our_swaps(store: Store, count: int) -> Rates:
    with timed() as timer:
        for number in range(count):
            swap(store, b"%d" % number, b"%d" % (number + 1))
    swap(store, b"%d" % count, b"0")
    return {"swap": count / timer.elapsed_s}


def swap(store: Store, before: bytes, after: bytes) -> None:
    change = Change(KEY, value=Raw(after), expect="value", expected=Raw(before))
    if not store.execute(Write(DICT, [change]))[0].written:
        raise AssertionError(before)


def raw_swaps(raw: RawQueue, count: int) -> Rates:
    with timed() as timer:
        for number in range(count):
            raw.swap(KEY, b"%d" % number, b"%d" % (number + 1))
    raw.swap(KEY, b"%d" % count, b"0")
    return {"swap": count / timer.elapsed_s}
