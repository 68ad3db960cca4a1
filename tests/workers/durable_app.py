"""Durable tasks that children of a worker find by name: they are run in processes."""

import asyncio
import os

from holdfast import AsyncJobContext, JobContext, Tasks

app = Tasks("durable", max_attempts=3, execution="processes", queue="durable")


@app.task(name="pid", execution="threads")
def pid(number: int) -> int:
    return number * 10


@app.task(name="in_process")
def in_process(job: JobContext, order: str) -> list[object]:
    parent = job.step("parent", os.getppid)
    approved = job.wait("approved", str)
    pages = job.call(pid, 1) + sum(job.map(pid, [pid.args(number) for number in range(3)]))
    return [order, parent != 0, approved, pages]


@app.task(name="in_process_async")
async def in_process_async(job: AsyncJobContext, order: str) -> list[object]:
    approved, pages = await asyncio.gather(job.wait("approved", str), job.call(pid, 2))
    return [order, approved, pages]
