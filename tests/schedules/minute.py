"""Fifty workers of one process that put runs of schedules and run them, beside other such processes.

    python -m tests.schedules.minute URL WARM_S MEASURED_S [alone]

Prints how late each run was put that was due within the measured seconds, and how often its workers tried to put one. With `alone` no
worker knows of the others, so each of them is the first for every run.
"""

import asyncio
import sys
import time
from typing import Any

from msgspec import Struct, json

from holdfast import ControlPlaneClient, JobContext, aio
from holdfast._async.flows import ticking
from holdfast.schedules.turns import Peers

WORKERS = 50


class Measured(Struct):
    """What one process saw."""

    late_s: list[float] = []
    tries: int = 0


def measure(measured: Measured, begin: float, end: float, *, is_alone: bool) -> None:
    """Count the tries to put runs that are due in this time."""
    put_due = ticking.put_due

    async def counted(store: Any, stored: Any, found: Any) -> Any:
        measured.tries += begin <= found.runs[-1] / 1_000_000 < end
        return await put_due(store, stored, found)

    ticking.put_due = counted
    if is_alone:
        Peers.turn_at = lambda *_: 0  # type: ignore[method-assign] # what the control is about


async def main(url: str, warm_s: str, measured_s: str, how: str = "") -> None:
    began = time.time() + float(warm_s)
    end = began + float(measured_s)
    measured = Measured()
    measure(measured, began, end, is_alone=how == "alone")
    client = ControlPlaneClient(url)

    async def handle(value: int, job: JobContext) -> None:
        assert job.scheduled_for is not None
        due = job.scheduled_for.timestamp()
        if began <= due < end:
            measured.late_s.append((job.message.created_at + client.async_store.wall_offset_us()) / 1_000_000 - due)

    workers = [aio.Worker(handle, "jobs", client=client, poll_interval_s=30.0) for _ in range(WORKERS)]
    for worker in workers:
        await worker.start()
    await asyncio.sleep(end - time.time() + 5.0)
    await asyncio.gather(*(worker.stop() for worker in workers))
    await client.aio.close()
    sys.stdout.write(json.encode(measured).decode())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
