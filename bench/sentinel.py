"""Cost of sentinel's calls here and in sentinel-coordination itself, on one PostgreSQL and in turns, as ratios in one run.

Figures that fall short are marked and do not fail the run: on a busy machine they say little.
"""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the package `sentinel` would be this very file.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

import psycopg

from bench.measure import QUICK, Figure, Rates, Run, Sizes, at_least, compare, interleave, timed
from bench.report import print_table, write_json
from holdfast.testing.servers import postgres

OURS, THEIRS = "holdfast.surfaces.sentinel", "sentinel"
PACKAGE = "sentinel-coordination"


def main() -> int:
    options = parse()
    sizes = QUICK if options.quick else Sizes()
    load = os.getloadavg()[0]
    with postgres() as url:
        groups = {"sentinel": list(calls(Run(Path(), sizes, tell), url))}
    notes = [
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {load:.1f} before. Read ratios, not absolutes.",
        f"Not installed here and so left out: {'nobody' if find_spec(THEIRS) else PACKAGE}.",
    ]
    print_table(groups, notes, is_judged=sizes.judged)
    if options.json:
        write_json(options.json, groups, notes, is_judged=sizes.judged)
    return 0


def calls(run: Run, url: str) -> Iterator[Figure]:
    """Acquire, heartbeat and release, each by itself, on connections as psycopg makes them: without autocommit."""
    names = [OURS, *([THEIRS] if find_spec(THEIRS) else [])]
    with psycopg.connect(url) as ours, psycopg.connect(url) as theirs:
        contenders = {name: contender(name, conn, run.sizes.swaps) for name, conn in zip(names, (ours, theirs), strict=False)}
        rates = interleave(run, "sentinel", contenders)
    yield from figures(rates[OURS], rates.get(THEIRS))


def figures(ours: dict[str, list[float]], theirs: dict[str, list[float]] | None) -> Iterator[Figure]:
    """Our rates call by call, beside theirs where they are installed."""
    for call, rate in ours.items():
        if theirs is None:
            yield Figure(call, max(rate), "/s")
        else:
            yield compare(call, rate, theirs[call], beside=PACKAGE, wanted=at_least(1.0))


def contender(name: str, conn: Any, count: int) -> Callable[[], Rates]:
    """What does one round: as many leases acquired, renewed and released, each call for itself."""
    sentinel = import_module(name)
    sentinel.init_db(conn)

    def round_of() -> Rates:
        keys = [f"order_{number}" for number in range(count)]
        rates: Rates = {}
        with timed() as timer:
            held = [sentinel.acquire(conn, key, ttl_ms=600_000) for key in keys]
        rates["acquire"] = count / timer.elapsed_s
        grants = [grant_of(name, key, result) for key, result in zip(keys, held, strict=True)]
        with timed() as timer:
            beats = [sentinel.heartbeat(conn, key, ttl_ms=600_000, **grant) for key, grant in grants]
        rates["heartbeat"] = count / timer.elapsed_s
        with timed() as timer:
            released = [sentinel.release(conn, key, **grant) for key, grant in grants]
        rates["release"] = count / timer.elapsed_s
        assert all(result.success for result in (*beats, *released))  # noqa: S101 - else nothing was measured
        return rates

    return round_of


def grant_of(name: str, key: str, result: Any) -> tuple[str, dict[str, Any]]:
    """How each is told which grant is meant: ours by the owner as documented, the other only together with its token."""
    return key, {"owner_id": result.owner_id} | ({} if name == OURS else {"fencing_token": result.fencing_token})


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; nothing is judged")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    return parser.parse_args()


def tell(text: str) -> None:
    """Show what is going on."""
    if text:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
