"""Sets the rates that tasks declare: the jobs of such a task are a group of their queue."""

from collections.abc import Sequence

from holdfast._async.flows.working.registering import policy_of
from holdfast.commands import Configure, Groups
from holdfast.stores import AsyncStore
from holdfast.workers.orders import Options


async def set_rates(store: AsyncStore, queue: str, tasks: Sequence[Options]) -> None:
    """Let the jobs of each of these tasks be handed out at its rate; what is so already is not written again."""
    if tasks and (await policy_of(store, queue)).groups is None:
        await store.execute(Configure("queue", queue, groups="fair"))
    for options in tasks:
        found = await store.execute(Groups(queue, options.task, exact=True))
        if options.rate is not None and [lane.own.rate for lane in found.lanes] != [options.rate]:
            await store.execute(Configure("queue", queue, group=options.task, rate=options.rate))
