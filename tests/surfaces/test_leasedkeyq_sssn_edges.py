"""leasedkeyq and sssn in awkward moments: forks, second writes, claims that others finished, the paths that programs import."""

import asyncio
import math
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.commands import Clear
from holdfast.surfaces.leasedkeyq import InvalidLeaseError, LeasedKeyQueue
from holdfast.surfaces.leasedkeyq.core import LeasedKeyQueue as FromCore
from holdfast.surfaces.leasedkeyq.lease import Lease
from holdfast.surfaces.leasedkeyq.types import InFlightPolicy
from holdfast.surfaces.sssn import ChannelMessage, GenericContent, WorkQueueChannel
from holdfast.surfaces.sssn.channel import FORGET_MIN
from holdfast.surfaces.sssn.channels.work_queue import WorkQueueChannel as FromChannels
from holdfast.surfaces.sssn.core.channel import ChannelMessage as FromCoreChannel


def in_a_child(act: Callable[[], Awaitable[Any]]) -> int:
    """The exit code of a forked child that runs this: 0 where it returned, 1 where it raised InvalidLeaseError."""
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            asyncio.run(_awaited(act))
            code = 0
        except InvalidLeaseError:
            code = 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


async def _awaited(act: Callable[[], Awaitable[Any]]) -> None:
    await act()


def test_a_forked_child_neither_settles_nor_gives_back_what_the_parent_leases(tmp_path: Path) -> None:
    queue: LeasedKeyQueue[str, int] = LeasedKeyQueue(store=f"sqlite:///{tmp_path}/s.db?durability=process")

    async def lease() -> Lease[str]:
        await queue.put("k", 1)
        return (await queue.get())[2]

    held = asyncio.run(lease())
    for act, code in ((lambda: queue.ack(held), 1), (lambda: queue.release(held), 1), (lambda: queue.renew(held, 5), 1), (queue.close, 0)):
        assert in_a_child(act) == code
        assert asyncio.run(queue.inflight_size()) == 1
    asyncio.run(queue.ack(held))
    assert asyncio.run(queue.inflight_size()) == 0
    queue.client.close()


def test_a_forked_child_settles_what_it_leases_itself(tmp_path: Path) -> None:
    queue: LeasedKeyQueue[str, int] = LeasedKeyQueue(store=f"sqlite:///{tmp_path}/s.db?durability=process")
    asyncio.run(queue.put("k", 1))

    async def lease_and_ack() -> None:
        await queue.ack((await queue.get())[2])

    assert in_a_child(lease_and_ack) == 0
    assert asyncio.run(queue.qsize()) == 0
    queue.client.close()


def test_a_forked_child_acknowledges_nothing_that_the_parent_claimed(tmp_path: Path) -> None:
    channel = WorkQueueChannel(id="jobs", name="jobs", store=f"sqlite:///{tmp_path}/s.db?durability=process")

    async def claimed() -> str:
        await channel.start()
        await channel.write("a", {"n": 1})
        return (await channel.read("w", exclusive=True))[0].id

    message_id = asyncio.run(claimed())
    assert in_a_child(lambda: channel.acknowledge("w", [message_id])) == 0
    assert asyncio.run(channel.acknowledge("w", [message_id])).count == 1
    channel.client.close()


def test_a_second_write_under_an_id_is_told_to_nobody() -> None:
    async def main() -> list[Any]:
        channel, told = WorkQueueChannel(id="jobs", name="jobs"), list[Any]()

        async def subscriber(message: ChannelMessage) -> None:
            told.append(message.content.data)

        await channel.start()
        await channel.subscribe("s", subscriber)
        for data in ("stored", "not stored"):
            await channel.write("a", ChannelMessage(id="1", timestamp=0.0, sender_id="a", content=GenericContent(data=data)), direct=True)
        return told

    assert asyncio.run(main()) == ["stored"]


def test_claims_that_others_finished_are_forgotten() -> None:
    async def main() -> int:
        channel = WorkQueueChannel(0.001, id="jobs", name="jobs")
        await channel.start()
        for n in range(3 * FORGET_MIN):
            await channel.write("a", n)
            await channel.read("w", exclusive=True)
            await channel.client.async_store.execute(Clear("queue", "jobs"))
        return len(channel._held)

    assert asyncio.run(main()) <= FORGET_MIN + 1


@pytest.mark.parametrize("call", ["get", "take"])
def test_a_timeout_that_is_no_number_is_refused(call: str) -> None:
    queue: LeasedKeyQueue[str, int] = LeasedKeyQueue()
    with pytest.raises(ValueError, match="timeout"):
        asyncio.run(queue.get(math.nan) if call == "get" else queue.take("k", math.nan))


def test_what_programs_import_from_submodules_is_the_same() -> None:
    assert FromCore is LeasedKeyQueue
    assert FromChannels is WorkQueueChannel
    assert FromCoreChannel is ChannelMessage
    assert InFlightPolicy is not None
