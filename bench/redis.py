"""Cost of the Redis store beside the least a script can do and beside other libraries, as ratios in one run.

Figures that fall short are marked and do not fail the run: on a busy machine they say little. A measurement that breaks does.
"""

import argparse
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the package `redis` would be this very file.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

from bench import redis_peers
from bench.measure import QUICK, Figure, Run, Sizes
from bench.redis_costs import batches, leases, waking, workers
from bench.report import print_table, write_json
from holdfast.testing.servers import redis

GROUPS: Mapping[str, Callable[[Run, str], Iterator[Figure]]] = {
    "batches": batches,
    "workers": workers,
    "peers": redis_peers.beside,
    "wakeup": waking,
    "leases": leases,
}


def main() -> int:
    options = parse()
    sizes = QUICK if options.quick else Sizes()
    begun, load = time.monotonic(), os.getloadavg()[0]
    groups: dict[str, list[Figure]] = {}
    broken: list[str] = []
    with redis() as url:
        for name in options.only or GROUPS:
            groups[name] = []
            try:
                groups[name].extend(GROUPS[name](Run(Path(), sizes, tell), url))
            except Exception:  # noqa: BLE001 - the other measurements are worth having
                broken.append(f"{name} broke: {traceback.format_exc()}")
    notes = [
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {load:.1f} before.",
        f"It took {time.monotonic() - begun:.0f} s. Read ratios, not absolutes.",
        f"Not installed here and so left out: {', '.join(redis_peers.missing()) or 'nobody'}.",
        *broken,
    ]
    print_table(groups, notes, is_judged=sizes.judged)
    if options.json:
        write_json(options.json, groups, notes, is_judged=sizes.judged)
    return 1 if broken else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=list(GROUPS), help="measure only this group; may be given several times")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; nothing is judged")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    return parser.parse_args()


def tell(text: str) -> None:
    """Show what is going on."""
    if text:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
