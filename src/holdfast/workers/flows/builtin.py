"""The built-in task that runs flows, for threads and for tasks."""

from typing import Any

from holdfast.codec import JSON
from holdfast.workers.flows.nodes import FLOW_TASK, OnFailure
from holdfast.workers.handlers.arguments import TaskHandler
from holdfast.workers.handlers.async_jobs import AsyncJobContext
from holdfast.workers.handlers.jobs import JobContext
from holdfast.workers.orders import Options


def run_flow(job: JobContext, name: str, graph: str, total: int, on_failure: OnFailure) -> dict[str, Any]:
    """Run a flow in a thread."""
    del name
    return job.run_flow(graph, total, on_failure)


async def run_flow_async(job: AsyncJobContext, name: str, graph: str, total: int, on_failure: OnFailure) -> dict[str, Any]:
    """Run a flow in a task."""
    del name
    return await job.run_flow_async(graph, total, on_failure)


def flow_options(queue: str, *, is_async: bool) -> Options:
    """How the jobs that are flows are run."""
    handler = TaskHandler(run_flow_async if is_async else run_flow)
    execution: Any = "tasks" if is_async else "threads"
    return Options(queue=queue, handler=handler, execution=execution, task=FLOW_TASK, results=True, result_codec=JSON)
