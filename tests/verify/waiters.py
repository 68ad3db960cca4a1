"""A process of some threads, each of which waits once for a semaphore: `python waiters.py URL NAME THREADS CAPACITY`.

Each prints its name and its place in the line as soon as it has one.
"""

import math
import sys
import threading

from holdfast import ControlPlaneClient
from holdfast._sync.flows.acquiring import acquire
from holdfast.commands import Acquire, LeaseName, Release
from holdfast.ids import new_id

KEY = '["semaphore","gpu"]'
IN_LINE_S = 6.0


def main(url: str, name: str, threads: int, capacity: int) -> None:
    """Wait with every thread, be inside for a moment, and leave."""
    with ControlPlaneClient(url) as client:

        def work(number: int) -> None:
            lease_id = new_id()
            command = Acquire(None, KEY, f"{name}-{number}", lease_id, 60.0, capacity=capacity, in_line_s=IN_LINE_S)
            place = client.store.execute(command).place
            sys.stdout.write(f"{name}-{number} {place}\n")
            sys.stdout.flush()
            acquired, _ = acquire(client.store, command, math.inf)
            assert acquired.lease.lease_id == lease_id
            client.store.execute(Release([LeaseName(None, KEY, lease_id)]))

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
