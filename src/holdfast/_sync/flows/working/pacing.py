# Generated from src/holdfast/_async/flows/working/pacing.py by tools/unasync.py; do not edit.
"""Sets the rates that tasks declare: the jobs of such a task are a group of their queue."""

from collections.abc import Sequence

from holdfast._sync.flows.working.registering import policy_of
from holdfast.commands import Configure, Groups
from holdfast.stores import Store
from holdfast.workers.orders import Options


def set_rates(store: Store, queue: str, tasks: Sequence[Options]) -> None:
    """Let the jobs of each of these tasks be handed out at its rate; what is so already is not written again."""
    if tasks and (policy_of(store, queue)).groups is None:
        store.execute(Configure("queue", queue, groups="fair"))
    for options in tasks:
        found = store.execute(Groups(queue, options.task, exact=True))
        if options.rate is not None and [lane.own.rate for lane in found.lanes] != [options.rate]:
            store.execute(Configure("queue", queue, group=options.task, rate=options.rate))
