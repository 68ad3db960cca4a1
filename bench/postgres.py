"""Cost of queues and leases on PostgreSQL beside the least that SQL can do and beside other libraries, as ratios in one run.

All on one server that commits durably, through the same loopback. Figures that fall short are marked and do not fail the run: on a busy
machine they say little. A measurement that breaks does.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# In this folder the packages `redis` and `sentinel` would be benchmarks.
if str(Path(__file__).resolve().parent) in sys.path:
    sys.path.remove(str(Path(__file__).resolve().parent))

from bench import postgres_peers
from bench.job_libraries import missing
from bench.networked import Groups, run_on, waking
from bench.postgres_costs import cells, leases
from holdfast.testing.servers import postgres

GROUPS: Groups = {
    "cells": cells,
    "peers": postgres_peers.beside,
    "wakeup": waking,
    "leases": leases,
}

DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "shared_buffers": "128MB", "max_wal_size": "2GB"}
"""As a server is set up that keeps what it acknowledged; without a checkpoint in the middle of one side's turn."""

if __name__ == "__main__":
    sys.exit(run_on(postgres(DURABLE), GROUPS, missing(postgres_peers.PEERS), __doc__))
