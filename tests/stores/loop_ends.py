"""A program that uses a store from event loops that end in many ways: `python loop_ends.py URL asyncio|uvloop`."""

import asyncio
import gc
import sys
import threading
import time
from pathlib import Path

import uvloop

from holdfast import ControlPlaneClient, Queue

URL, KIND = sys.argv[1:]
run = uvloop.run if KIND == "uvloop" else asyncio.run


async def use(client: ControlPlaneClient | None = None) -> None:
    jobs = Queue.from_name("jobs", client=client) if client else Queue.from_name("jobs", base_url=URL)
    await asyncio.gather(jobs.aio.put(1), jobs.aio.put(2))
    await jobs.aio.get()


def client_around_a_loop() -> None:
    with ControlPlaneClient(URL) as client:
        run(use(client))


def client_that_is_dropped() -> None:
    run(use(ControlPlaneClient(URL)))


def shared_client() -> None:
    run(use())


def client_closed_in_a_task() -> None:
    async def main() -> None:
        with ControlPlaneClient(URL) as client:
            await use(client)

    run(main())


def client_closed_in_a_task_that_goes_on() -> None:
    async def main() -> None:
        client = ControlPlaneClient(URL)
        await use(client)
        client.close()
        for _ in range(10):
            await asyncio.sleep(0)

    run(main())


def client_dropped_while_its_loop_runs() -> None:
    async def main() -> None:
        await use(ControlPlaneClient(URL))
        gc.collect()
        for _ in range(10):
            await asyncio.sleep(0)

    run(main())


def client_closed_by_another_thread() -> None:
    async def main() -> None:
        client = ControlPlaneClient(URL)
        await use(client)
        thread = threading.Thread(target=client.close)
        thread.start()
        await asyncio.to_thread(thread.join)

    run(main())


def client_for_tasks() -> None:
    async def main() -> None:
        async with ControlPlaneClient(URL) as client:
            await use(client)

    run(main())


def threads() -> None:
    for _ in range(3):
        thread = threading.Thread(target=client_around_a_loop)
        thread.start()
        thread.join()


def open_sockets() -> int:
    files = Path("/proc/self/fd").iterdir()
    return sum(file.is_symlink() and str(file.readlink()).startswith("socket") for file in list(files))


shared_client()
gc.collect()
before = open_sockets()
for _ in range(10):
    client_around_a_loop()
    client_that_is_dropped()
    shared_client()
client_closed_in_a_task()
client_closed_in_a_task_that_goes_on()
client_dropped_while_its_loop_runs()
client_closed_by_another_thread()
client_for_tasks()
threads()
gc.collect()
until = time.monotonic() + 10
while open_sockets() > before and time.monotonic() < until:
    time.sleep(0.01)
sys.stdout.write("nothing is left\n" if open_sockets() <= before else f"{open_sockets() - before} sockets are left\n")
