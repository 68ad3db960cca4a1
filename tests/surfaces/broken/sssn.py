"""What sssn's work queues do wrong, or a careless surface for them would."""

from typing import Any

from holdfast.commands import Browse, Settle
from holdfast.surfaces.sssn import Settled, WorkQueueChannel
from tests.surfaces import test_sssn
from tests.surfaces.broken.fault import Fault


def acknowledged_by_anybody(original: Any) -> Any:
    async def settle(channel: Any, reader: str, ids: Any, what: str, **how: Any) -> Any:
        if what != "acknowledge":
            return await original(channel, reader, ids, what, **how)
        for one in ids:
            (found,) = (await channel.client.async_store.execute(Browse(channel.id, ids=[one]))).messages
            await channel.client.async_store.execute(Settle([found.receipt]))
        return Settled(len(list(ids)))

    return settle


def never_freed(original: Any) -> Any:
    async def settle(channel: Any, *args: Any, **how: Any) -> Any:
        held = dict(channel._held)
        settled = await original(channel, *args, **how)
        channel._held.update(held)
        return settled

    return settle


def failing_like_a_nack(_: Any) -> Any:
    return lambda channel, reader, ids, **_options: channel.nack(reader, ids)


FAULTS = [
    Fault(
        "anybody acknowledges",
        WorkQueueChannel,
        "_settle",
        acknowledged_by_anybody,
        test_sssn.test_an_acknowledge_by_someone_who_no_longer_holds_changes_nothing,
    ),
    Fault("what is done is remembered", WorkQueueChannel, "_settle", never_freed, test_sssn.test_nothing_is_kept_of_what_is_acknowledged),
    Fault(
        "a failure is given back like new",
        WorkQueueChannel,
        "fail",
        failing_like_a_nack,
        test_sssn.test_failing_burns_the_budget_and_giving_back_does_not,
    ),
]
