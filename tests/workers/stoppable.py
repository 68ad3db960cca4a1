"""A program that runs many jobs at once until SIGTERM: some end soon after it, some when told, some never.

    python -m tests.workers.stoppable FOLDER URL threads|tasks|processes AT_ONCE JOBS [PREFETCH]

Each job that began leaves a file in the folder. When all run that can, the program says so.
"""

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

from holdfast import JobContext, Queue, Worker

FOLDER = Path(sys.argv[1])


def handle(value: int, job: JobContext) -> None:
    (FOLDER / str(value)).touch()
    if value % 3 == 0:
        while not (FOLDER / "stopping").exists():
            threading.Event().wait(0.01)
    elif value % 3 == 1:
        while not job.should_stop:
            threading.Event().wait(0.01)
        job.check()
    else:
        wait_for_ever()


def wait_for_ever() -> None:
    while True:
        try:
            threading.Event().wait()
        except Exception:  # noqa: BLE001, S112 - not even an interrupt ends it
            continue


async def handle_async(value: int) -> None:
    (FOLDER / str(value)).touch()
    if value % 3 == 0:
        while not (FOLDER / "stopping").exists():  # noqa: ASYNC110 - a thread makes it
            await asyncio.sleep(0.01)
    else:
        await asyncio.Event().wait()


def announce(worker: Worker[Any, Any, Any], at_once: int) -> None:
    """Say that all run, let some end once the worker stops, and then give the others no more time."""
    while len(list(FOLDER.iterdir())) < at_once:
        threading.Event().wait(0.01)
    sys.stdout.write("running\n")
    sys.stdout.flush()
    while worker.health.state != "stopping":
        threading.Event().wait(0.01)
    (FOLDER / "stopping").touch()
    while any(
        message.value % 3 == 0 and message.value < at_once
        for message in Queue[int]("jobs", client=worker.client).browse(state="leased", limit=1_000)
    ):
        threading.Event().wait(0.01)
    worker.tell_stop()


def main(url: str, kind: Any, at_once: str, jobs: str, prefetch: str = "") -> None:
    function: Any = handle_async if kind == "tasks" else handle
    worker: Worker[Any, Any, Any] = Worker(
        function,
        "jobs",
        base_url=url,
        execution=kind,
        concurrency=int(at_once),
        prefetch=int(prefetch) if prefetch else None,
        max_attempts=1,
        grace_s=100.0,
    )
    worker.put_many(range(int(jobs)))
    threading.Thread(target=announce, args=(worker, int(at_once)), daemon=True).start()
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[2:])
