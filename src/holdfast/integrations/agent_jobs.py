"""What the integrations of agents share: the job in which an agent runs, and the branch of it that is the agent's own."""

from weakref import WeakKeyDictionary

from holdfast.errors import HoldfastError
from holdfast.workers.handlers.async_jobs import AsyncJobContext
from holdfast.workers.handlers.jobs import current_job
from holdfast.workers.steps.rows import NAME_CHARACTERS

_counts: "WeakKeyDictionary[AsyncJobContext, dict[str, int]]" = WeakKeyDictionary()
"""How many agents of each name a run of a job has begun."""


def durable_job() -> AsyncJobContext:
    """The job that runs here; raises where an agent cannot be durable."""
    job = current_job()
    if not isinstance(job, AsyncJobContext):
        raise HoldfastError("an agent is durable in an async task alone: declare the task with `async def`, and await the agent in it")
    return job


def next_number(job: AsyncJobContext, name: str) -> int:
    """Which run of this agent it is in this run of the job: agents begin in the same order whenever the job is run again."""
    counts = _counts.setdefault(job, {})
    counts[name] = counts.get(name, 0) + 1
    return counts[name]


def short(name: str) -> str:
    """A name that is not too long for a step or a branch."""
    return name[:NAME_CHARACTERS]
