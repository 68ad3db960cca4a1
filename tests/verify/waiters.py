"""A process of some threads, each of which waits once for a semaphore: `python waiters.py URL NAME THREADS CAPACITY`."""

import sys
import threading

from holdfast import ControlPlaneClient, Semaphore


def main(url: str, name: str, threads: int, capacity: int) -> None:
    """Wait with every thread, be inside for a moment, and leave."""
    with ControlPlaneClient(url) as client:

        def work(number: int) -> None:
            with Semaphore("gpu", capacity, holder=f"{name}-{number}", in_line_s=2.0, client=client):
                pass

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
