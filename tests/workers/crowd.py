"""A program that forks workers, one after the other, until one finds nothing left to do; some jobs kill the worker that runs them.

    python -m tests.workers.crowd URL FILE

Each execution adds a line with its value to the file. Every eighth value kills.
"""

import os
import signal
import sys
from pathlib import Path

from holdfast import Backoff, Queue, Worker

VALUES = range(40)
KILLERS = VALUES[7::8]


def live(url: str, file: Path) -> None:
    def handle(value: int) -> None:
        with file.open("a") as lines:
            lines.write(f"{value}\n")
        if value in KILLERS:
            os.kill(os.getpid(), signal.SIGKILL)

    worker = Worker(handle, "jobs", base_url=url, lease_s=0.2, max_attempts=3, backoff=Backoff(0.0, jitter=0.0), heartbeat_s=None)
    queue = Queue[int]("jobs", base_url=url)
    while (stats := queue.stats()).total > stats.dead:
        # The leases of the dead end by themselves, and bring what they held.
        worker.run(until_empty=True, signals=False)


def main(url: str, file: Path) -> None:
    if os.fork() == 0:
        Queue[int]("jobs", base_url=url).put_many(list(VALUES))
        os._exit(0)
    os.wait()
    for _ in range(4 * len(KILLERS)):
        if os.fork() == 0:
            live(url, file)
            os._exit(0)
        _, status = os.wait()
        if status == 0:
            return
    sys.exit("there are still jobs")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
