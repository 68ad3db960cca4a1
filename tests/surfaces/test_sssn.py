"""The work-queue channel keeps its promises, and none of the original's faults is here."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.commands import Count
from holdfast.stores.memory import MemoryStore
from holdfast.surfaces.sssn import ChannelMessage, GenericContent, MessageContent, Settled, Visibility, WorkQueueChannel
from holdfast.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[MemoryStore]:
    store = MemoryStore(clock=clock, by_reference=True)
    yield store
    store.close()


async def started(**options: Any) -> WorkQueueChannel:
    channel = WorkQueueChannel(**{"id": "jobs", "name": "Jobs", **options})
    await channel.start()
    return channel


async def write(channel: WorkQueueChannel, *data: Any) -> list[str]:
    return [await channel.write("producer", one) for one in data]


def data(messages: list[ChannelMessage]) -> list[Any]:
    return [message.content.data for message in messages]


async def claim(channel: WorkQueueChannel, worker: str, limit: int = 10) -> list[ChannelMessage]:
    return await channel.read(worker, limit=limit, exclusive=True)


async def test_each_message_is_claimed_by_one_worker_in_the_order_written() -> None:
    channel = await started()
    await write(channel, "a", "b", "c")
    assert await claim(channel, "one", 0) == []
    assert (data(await claim(channel, "one", 2)), data(await claim(channel, "two"))) == (["a", "b"], ["c"])
    assert await claim(channel, "three") == []


async def test_what_is_given_back_or_expires_regains_its_place(memory: MemoryStore, clock: FakeClock) -> None:
    channel = await started(store=memory, claim_timeout=60.0)
    for one in ("a", "b", "c", "d"):
        await write(channel, one)
        clock.advance(1)
    first = await claim(channel, "one", 2)
    second = await claim(channel, "two", 1)
    await channel.nack("two", [second[0].id])
    await channel.nack("one", [first[1].id])
    assert data(await channel.read("anyone")) == ["b", "c", "d"]
    clock.advance(60)
    assert data(await channel.read("anyone")) == ["a", "b", "c", "d"], "whoever looks sees it, too"
    assert data(await claim(channel, "two", 2)) == ["a", "b"]


async def test_an_acknowledge_by_someone_who_no_longer_holds_changes_nothing(
    memory: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    channel = await started(store=memory, claim_timeout=60.0)
    (message_id,) = await write(channel, "a")
    await claim(channel, "stuck")
    clock.advance(60)
    await claim(channel, "rescue")
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert await channel.acknowledge("stuck", [message_id]) == Settled(0, (message_id,))
        assert await channel.nack("stranger", [message_id]) == Settled(0, (message_id,))
        assert await channel.fail("stuck", [message_id, "no-such-id"]) == Settled(0, (message_id, "no-such-id"))
    assert "'stuck'" in caplog.text
    assert message_id in caplog.text
    assert dict(channel._store.claims)[message_id][0] == "rescue"
    assert await channel.acknowledge("rescue", [message_id, message_id]) == Settled(1)


async def test_an_expired_claim_that_nobody_took_over_is_lost_too(memory: MemoryStore, clock: FakeClock) -> None:
    channel = await started(store=memory, claim_timeout=60.0)
    (message_id,) = await write(channel, "a")
    await claim(channel, "late")
    clock.advance(60)
    assert (await channel.acknowledge("late", [message_id])).lost == (message_id,)
    assert data(await claim(channel, "rescue")) == ["a"]


async def test_nothing_is_kept_of_what_is_acknowledged(memory: MemoryStore) -> None:
    channel = await started(store=memory)
    for number in range(200):
        (message_id,) = await write(channel, number)
        await claim(channel, "one")
        await channel.acknowledge("one", [message_id])
    assert (memory.execute(Count("jobs")).total, channel._held, memory._tables.messages) == (0, {}, {})


async def test_failing_burns_the_budget_and_giving_back_does_not() -> None:
    channel = await started(max_attempts=2)
    await write(channel, "poison")
    for _ in range(5):
        (message,) = await claim(channel, "one")
        await channel.nack("one", [message.id])
    for error in ("first", "second"):
        (message,) = await claim(channel, "one")
        await channel.fail("one", [message.id], error=error)
    assert await claim(channel, "one") == []
    assert data(await channel.dead_letters()) == ["poison"]


async def test_a_failed_message_may_be_delayed(memory: MemoryStore, clock: FakeClock) -> None:
    channel = await started(store=memory)
    (message_id,) = await write(channel, "a")
    await claim(channel, "one")
    await channel.fail("one", [message_id], delay=8.0)
    assert await claim(channel, "one") == []
    clock.advance(8)
    assert data(await claim(channel, "one")) == ["a"]


async def test_looking_claims_nothing_and_goes_on_behind_a_message() -> None:
    channel = await started()
    _, second, _ = await write(channel, "a", "b", "c")
    assert data(await channel.read("anyone", limit=2)) == ["a", "b"]
    assert data(await channel.read("anyone", after=second)) == ["c"]
    assert data(await channel.read("anyone", after="no-such-id")) == ["a", "b", "c"]
    assert data(await claim(channel, "one")) == ["a", "b", "c"]


async def test_writes_are_accepted_between_start_and_drain() -> None:
    channel = WorkQueueChannel(id="jobs", name="Jobs")
    with pytest.raises(RuntimeError, match="start"):
        await channel.write("producer", "early")
    await channel.start()
    channel.stop()
    await channel.write("producer", "in time")
    await channel.drain(timeout=1.0)
    with pytest.raises(RuntimeError):
        await channel.write("producer", "late")
    assert data(await claim(channel, "one")) == ["in time"], "what is here can still be read"


async def test_a_direct_write_takes_a_whole_message() -> None:
    channel = await started()
    message = ChannelMessage(
        id="mine", timestamp=1.5, sender_id="me", content=GenericContent(data=1), metadata={"x": 1}, correlation_id="c", reply_to="r"
    )
    assert await channel.write("me", message, direct=True) == "mine"
    assert await channel.write("me", message) == "mine", "a message under an id that exists changes nothing"
    with pytest.raises(TypeError, match="ChannelMessage"):
        await channel.write("me", {"data": 1}, direct=True)
    assert await claim(channel, "one") == [message]
    assert message.model_dump()["content"] == {"data": 1}


class Photo(MessageContent, kw_only=True):
    file: str


async def test_contents_of_ones_own_type_travel(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with ControlPlaneClient(url) as client:
        channel = await started(store=client, content_type=Photo)
        await write(channel, Photo(file="a.jpg"))
        with pytest.raises(TypeError, match="content_type=GenericContent"):
            await write(channel, "plain")
        (message,) = await claim(channel, "one")
        assert message.content == Photo(file="a.jpg")
        assert (message.sender_id, message.metadata, message.reply_to) == ("producer", {}, None)


async def test_removing_leaves_what_somebody_holds() -> None:
    channel = await started()
    ids = await write(channel, *range(6))
    await claim(channel, "one", 1)
    await channel.remove([ids[0], ids[1]])
    await channel.clear(lambda message: message.content.data == 2)
    assert data(await channel.read("anyone")) == [3, 4, 5]
    await channel.evict(max_count=2)
    assert data(await channel.read("anyone")) == [4, 5]
    assert await channel.acknowledge("one", [ids[0]]) == Settled(1)
    await channel.clear()
    assert await channel.read("anyone") == []


async def test_retention_removes_what_is_old_or_too_much() -> None:
    channel = await started(retention_max_age=3600.0, retention_max_count=2)
    old = ChannelMessage(id="old", timestamp=1.0, sender_id="me", content=GenericContent(data="old"))
    await channel.write("me", old, direct=True)
    await write(channel, "a", "b", "c")
    await channel.on_maintain()
    assert data(await channel.read("anyone")) == ["b", "c"]


async def test_subscribers_hear_of_each_message_and_do_not_disturb_each_other(caplog: pytest.LogCaptureFixture) -> None:
    channel, heard = await started(), list[Any]()

    async def broken(message: ChannelMessage) -> None:
        raise RuntimeError("deaf")

    async def listening(message: ChannelMessage) -> None:
        heard.append(message.content.data)

    await channel.subscribe("broken", broken)
    await channel.subscribe("listening", listening)
    await write(channel, "a")
    await channel.unsubscribe("listening")
    await write(channel, "b")
    assert heard == ["a"]
    assert "deaf" in caplog.text


async def print_it(message: ChannelMessage) -> None:
    print(message)  # noqa: T201 - to be refused


class Doorman:
    """Lets writers write and readers read."""

    async def authorize_read(self, system_id: str, channel_id: str) -> bool:
        return system_id == "reader"

    async def authorize_write(self, system_id: str, channel_id: str) -> bool:
        return system_id == "writer"


async def test_security_decides_who_reads_and_writes() -> None:
    channel = await started(security=Doorman())
    await channel.write("writer", "a")
    for refused in (channel.write("reader", "b"), channel.read("writer", exclusive=True), channel.subscribe("writer", print_it)):
        with pytest.raises(PermissionError):
            await refused
    assert data(await claim(channel, "reader")) == ["a"]


async def test_the_claims_are_a_mapping_that_only_a_read_adds_to(memory: MemoryStore) -> None:
    channel = await started(store=memory)
    first, second = await write(channel, "a", "b")
    await claim(channel, "one", 1)
    claims = channel._store.claims
    assert (list(claims), len(claims), claims[first][0]) == ([first], 1, "one")
    with pytest.raises(ValueError, match="'one'"):
        claims[first] = ("two", 0.0)
    with pytest.raises(KeyError):
        claims[second] = ("one", 0.0)
    del claims[first]
    assert data(await claim(channel, "two")) == ["a", "b"]


async def test_the_channel_says_what_it_is() -> None:
    channel = await started(description="Photos", visibility=Visibility.PUBLIC)
    assert channel.info.model_dump() == {"id": "jobs", "name": "Jobs", "description": "Photos", "visibility": "public", "period": 60.0}
    assert (channel.claim_timeout, channel.max_workers, channel.max_raw_buffer_size) == (300.0, 10, 10_000)
