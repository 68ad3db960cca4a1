"""A program that runs a hundred jobs at once until SIGTERM: some end soon after it, some when told, some never.

python -m tests.workers.stoppable URL threads|tasks
"""

import asyncio
import sys
import threading

from holdfast import JobContext, Worker

began = threading.Semaphore(0)
told_to_stop = threading.Event()


def handle(value: int, job: JobContext) -> None:
    began.release()
    if value % 3 == 0:
        told_to_stop.wait()
    elif value % 3 == 1:
        while not job.should_stop:
            threading.Event().wait(0.01)
        job.check()
    else:
        threading.Event().wait()


async def handle_async(value: int, job: JobContext) -> None:
    began.release()
    if value % 3 == 0:
        while not told_to_stop.is_set():  # noqa: ASYNC110 - it is set by a thread
            await asyncio.sleep(0.01)
    else:
        await asyncio.Event().wait()


def announce(worker: Worker[..., object]) -> None:
    for _ in range(100):
        began.acquire()
    sys.stdout.write("running\n")
    sys.stdout.flush()
    while worker.health.state != "stopping":
        threading.Event().wait(0.01)
    told_to_stop.set()


def main(url: str, kind: str) -> None:
    function = handle if kind == "threads" else handle_async
    worker = Worker(function, "jobs", base_url=url, concurrency=100, max_attempts=1, grace_s=2.0)
    worker.put_many(range(150))
    threading.Thread(target=announce, args=(worker,), daemon=True).start()
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
