"""Cost of the Redis store beside the least a script can do and beside other libraries, as ratios in one run.

Figures that fall short are marked and do not fail the run: on a busy machine they say little. A measurement that breaks does.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the package `redis` would be this very file.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

from bench import redis_peers
from bench.job_libraries import missing
from bench.networked import Groups, run_on, waking
from bench.redis_costs import cells, leases
from holdfast.testing.servers import redis

GROUPS: Groups = {
    "cells": cells,
    "peers": redis_peers.beside,
    "wakeup": waking,
    "leases": leases,
}

if __name__ == "__main__":
    sys.exit(run_on(redis(), GROUPS, missing(redis_peers.PEERS), __doc__))
