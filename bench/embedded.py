"""Cost of the embedded stores beside raw statements and other libraries, as ratios in one run.

Figures that fall short are marked and do not fail the run: on a busy machine they say little. A measurement that breaks does.
"""

import argparse
import os
import platform
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import keyed, peers
from bench.flatness import attempts, backlog, statements, waiters
from bench.measure import QUICK, Figure, Run, Sizes
from bench.memory import memory
from bench.one_process import beside_peers, beside_raw
from bench.power import power
from bench.processes import four_processes
from bench.report import print_table, write_json
from bench.starting import imports
from bench.swapping import swaps
from bench.waking import idle, wake_up

GROUPS: Mapping[str, tuple[Callable[[Run], Iterator[Figure]], ...]] = {
    "sqlite": (beside_raw,),
    "peers": (beside_peers,),
    "power": (power,),
    "processes": (four_processes,),
    "memory": (memory,),
    "keyed": (keyed.operations, keyed.flatness),
    "flatness": (statements, backlog, attempts, waiters),
    "wakeup": (wake_up, idle),
    "imports": (imports,),
    "dict": (swaps,),
}


def main() -> int:
    options = parse()
    sizes = QUICK if options.quick else Sizes()
    begun, load = time.monotonic(), os.getloadavg()[0]
    groups: dict[str, list[Figure]] = {}
    broken: list[str] = []
    # Not in the temporary folder of the system, which may lie in memory and then knows no fsync.
    with TemporaryDirectory(dir=options.dir, prefix="bench-") as folder:
        for name in options.only or GROUPS:
            place = Path(folder, name)
            place.mkdir()
            groups[name] = []
            for measurement in GROUPS[name]:
                try:
                    groups[name].extend(measurement(Run(place, sizes, tell)))
                except Exception:  # noqa: BLE001 - the other measurements are worth having
                    broken.append(f"{name}: {measurement.__name__} broke: {traceback.format_exc()}")
    tell("")
    notes = [*notes_of(load, time.monotonic() - begun), *broken]
    print_table(groups, notes, is_judged=sizes.judged)
    if options.json:
        write_json(options.json, groups, notes, is_judged=sizes.judged)
    return 1 if broken else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=list(GROUPS), help="measure only this group; may be given several times")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; nothing is judged")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="folder on the disk to measure; the current one by default")
    return parser.parse_args()


def notes_of(load: float, took_s: float) -> list[str]:
    notes = [
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores.",
        f"Load average {load:.1f} before and {os.getloadavg()[0]:.1f} after {took_s:.0f} s: read ratios, not absolutes.",
        "A ratio is the median of the rounds' own; at best is that of the best rounds of both, which a busy machine disturbs least.",
    ]
    if left_out := peers.missing():
        notes.append(f"Not installed here and so left out: {', '.join(left_out)}.")
    return notes


def tell(text: str) -> None:
    """Show what is going on, in place where that is possible."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
