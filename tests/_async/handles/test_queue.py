"""Putting into a queue and getting out of it."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from holdfast._async.handles.queue import AsyncQueue
from holdfast.client import ControlPlaneClient
from holdfast.codec import MSGPACK
from holdfast.commands.topics import queue_topic, room_topic
from holdfast.errors import IdTaken, KeyInFlight, QueueFull
from holdfast.results import QueueResponse
from holdfast.testing.clock import START_US, FakeClock
from tests.runners import AsyncRunner, waiting_on

pytestmark = pytest.mark.anyio

NEVER_POLLS_S = 3_600.0


class Job(msgspec.Struct):
    name: str
    size: int = 0


@dataclass
class Point:
    x: int


class Model(BaseModel):
    name: str


@pytest.fixture
def jobs(client: ControlPlaneClient) -> AsyncQueue[Any]:
    return AsyncQueue.from_name("jobs", client=client)


async def test_a_handle_touches_nothing_and_the_first_put_creates(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    assert await AsyncQueue.list(client=client) == []
    assert await jobs.length() == 0
    await jobs.put(1)
    assert [queue.name for queue in await AsyncQueue.list(client=client)] == ["jobs"]


async def test_create_never_empties(client: ControlPlaneClient) -> None:
    jobs = await AsyncQueue.create("jobs", client=client)
    await jobs.put(1)
    again = await AsyncQueue.create("jobs", client=client)
    assert await again.get() == 1


async def test_what_list_gives_reaches_the_same_store(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    (found,) = await AsyncQueue.list(prefix="jo", client=client)
    assert await found.get() == 1
    assert await AsyncQueue.list(prefix="x", client=client) == []


async def test_values_come_out_in_the_order_they_were_put(jobs: AsyncQueue[Any]) -> None:
    await jobs.put({"image_id": "img-1"})
    await jobs.put_many([("a", 1), {2, 3}])
    assert await jobs.length() == 3
    assert await jobs.get() == {"image_id": "img-1"}
    assert await jobs.get_many(10) == [("a", 1), {2, 3}]


async def test_an_empty_queue_gives_the_default(jobs: AsyncQueue[Any]) -> None:
    assert await jobs.get() is None
    assert await jobs.get(default="nothing", timeout_s=0.0) == "nothing"
    assert await jobs.get_many(3, timeout_s=0.001) == []


async def test_putting_nothing_is_nothing(jobs: AsyncQueue[Any]) -> None:
    assert await jobs.put_many([]) == []


async def test_a_put_answers_the_id_and_whether_it_is_new(jobs: AsyncQueue[Any]) -> None:
    first = await jobs.put(1, id="one")
    again = await jobs.put(2, id="one")
    assert (first, first.created) == ("one", True)
    assert (again, again.created) == ("one", False)
    assert await jobs.get_many(10) == [1]


async def test_an_id_is_text_wherever_text_may_be(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    first = await jobs.put(1)
    await jobs.put({"after": first, first: [first]}, key=first, metadata={"id": first}, id=first + "-2")
    typed = AsyncQueue.from_name("typed", type=Job, client=client)
    await typed.put(Job(first))
    claim = await jobs.take(str(first), claimer="w")
    assert claim is not None
    assert (claim.value, claim.key, claim.metadata) == ({"after": first, first: [first]}, first, {"id": first})
    assert {type(claim.value["after"]), type(claim.key)} == {str}
    assert await typed.get() == Job(first)


async def test_clear_and_delete_say_how_much_was_there(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many([1, 2])
    assert await jobs.clear() == QueueResponse(2)
    assert [queue.name for queue in await AsyncQueue.list(client=client)] == ["jobs"]
    await jobs.put(3)
    assert await jobs.delete() == QueueResponse(1)
    assert await AsyncQueue.list(client=client) == []


async def test_a_higher_priority_goes_first(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("low")
    await jobs.put("high", priority=5)
    assert await jobs.get_many(2) == ["high", "low"]


async def test_a_delayed_message_is_not_there_before_its_time(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put("later", delay_s=10)
    assert (await jobs.length(), (await jobs.stats()).delayed) == (1, 1)
    assert await jobs.get() is None
    clock.advance(10)
    assert await jobs.get() == "later"


async def test_at_is_a_moment_of_the_wall_clock(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    now = datetime.fromtimestamp(START_US / 1_000_000, UTC)
    await jobs.put("then", at=now + timedelta(seconds=10))
    assert await jobs.get() is None
    clock.advance(10)
    assert await jobs.get() == "then"


async def test_a_moment_needs_a_time_zone_and_no_second_delay(jobs: AsyncQueue[Any]) -> None:
    with pytest.raises(ValueError, match="time zone"):
        await jobs.put(1, at=datetime(2030, 1, 1))  # noqa: DTZ001 - what is refused
    with pytest.raises(ValueError, match="not both"):
        await jobs.put(1, at=datetime(2030, 1, 1, tzinfo=UTC), delay_s=1)


async def test_what_nobody_started_in_time_is_dropped(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.put("now or never", start_within_s=5)
    clock.advance(5)
    assert await jobs.get() is None


async def test_a_key_is_updated_while_it_waits(jobs: AsyncQueue[Any]) -> None:
    first = await jobs.put("old", key="k")
    again = await jobs.put("new", key="k")
    assert (again, again.created) == (first, False)
    assert await jobs.get_many(2) == ["new"]


async def test_keys_are_told_apart_by_type(jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many(["a", "b", "c"], keys=[1, "1", (1, "x")])
    assert await jobs.length() == 3


async def test_if_present_decides_for_both_states(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("first", key="k")
    kept = await jobs.put("second", key="k", if_present="keep")
    assert not kept.created
    with pytest.raises(KeyInFlight):
        await jobs.put("third", key="k", if_present="reject")
    assert await jobs.take("k", claimer="w") is not None
    with pytest.raises(KeyInFlight):
        await jobs.put("third", key="k", if_present="reject")
    await jobs.put("third", key="k", if_present="buffer")
    assert (await jobs.stats()).buffered == 1


async def test_a_known_id_with_another_value_is_refused_if_the_put_says_so(jobs: AsyncQueue[Any]) -> None:
    await jobs.put({"a": 1, "b": 2}, id="x", if_id="reject")
    assert not (await jobs.put({"b": 2, "a": 1}, id="x", if_id="ignore")).created
    with pytest.raises(IdTaken):
        await jobs.put("other", id="x", if_id="reject")


async def test_a_key_is_put_once_in_its_time(jobs: AsyncQueue[Any]) -> None:
    first = await jobs.put("a", key="k", unique_for_s=60.0)
    assert await jobs.get() == "a"
    again = await jobs.put("b", key="k", unique_for_s=60.0)
    assert (again, again.created) == (first, False)
    with pytest.raises(KeyInFlight):
        await jobs.put("c", key="k", unique_for_s=60.0, if_recent="reject")


async def test_a_postponed_message_has_the_last_value(jobs: AsyncQueue[Any]) -> None:
    await jobs.put("a", key="k", delay_s=60.0)
    await jobs.put("b", key="k", if_ready="postpone", delay_s=60.0, at_latest_s=0.0)
    assert await jobs.get() == "b"


async def test_a_policy_without_a_key_is_refused(jobs: AsyncQueue[Any]) -> None:
    with pytest.raises(ValueError, match="key="):
        await jobs.put(1, if_present="keep")


async def test_a_typed_queue_gives_back_its_type(client: ControlPlaneClient) -> None:
    jobs = await AsyncQueue.create("jobs", type=Job, client=client)
    await jobs.put(Job("a", 1))
    points = AsyncQueue.from_name("points", type=Point, client=client)
    await points.put(Point(3))
    models = AsyncQueue.from_name("models", type=Model, client=client)
    await models.put(Model(name="m"))
    assert (await jobs.get(), await points.get(), await models.get()) == (Job("a", 1), Point(3), Model(name="m"))


async def test_without_a_type_an_object_is_refused_with_a_hint(jobs: AsyncQueue[Any]) -> None:
    with pytest.raises(TypeError, match="type=Job"):
        await jobs.put(Job("a"))
    assert await jobs.length() == 0


async def test_a_value_that_does_not_fit_the_type_is_not_lost(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    await jobs.put({"no": "job"})
    with pytest.raises(ValueError, match="does not fit Job"):
        await AsyncQueue.from_name("jobs", type=Job, client=client).get()
    assert await jobs.get() == {"no": "job"}


async def test_a_codec_of_ones_own(client: ControlPlaneClient) -> None:
    packed = await AsyncQueue.create("packed", codec=MSGPACK, client=client)
    await packed.put({"raw": b"1"})
    assert await packed.get() == {"raw": b"1"}


async def test_a_type_and_a_codec_are_one_too_many(client: ControlPlaneClient) -> None:
    with pytest.raises(ValueError, match="not both"):
        AsyncQueue.from_name("jobs", type=Job, codec=MSGPACK, client=client)  # type: ignore[call-overload] # what is refused


async def test_a_put_wakes_who_waits(client: ControlPlaneClient, jobs: AsyncQueue[Any]) -> None:
    async with AsyncRunner() as runner:

        async def wait() -> Any:
            return await jobs.get(timeout_s=math.inf, poll_interval_s=NEVER_POLLS_S)

        waiting = runner.start(wait)
        await runner.until(lambda: waiting_on(client.async_store, queue_topic("jobs")) == 1)
        await jobs.put("hello")
        assert await waiting.result() == "hello"


async def test_a_full_queue_refuses_at_once(client: ControlPlaneClient) -> None:
    jobs = await AsyncQueue.create("jobs", maxsize=2, client=client)
    await jobs.put_many([1, 2])
    with pytest.raises(QueueFull):
        await jobs.put(3)
    with pytest.raises(QueueFull):
        await jobs.put(3, timeout_s=0.001)
    await jobs.configure(maxsize=None)
    await jobs.put(3)


async def test_creating_again_leaves_the_limit(client: ControlPlaneClient) -> None:
    await AsyncQueue.create("jobs", maxsize=1, client=client)
    jobs = await AsyncQueue.create("jobs", client=client)
    await jobs.put(1)
    with pytest.raises(QueueFull):
        await jobs.put(2)


async def test_a_blocked_put_goes_on_when_there_is_room(client: ControlPlaneClient) -> None:
    jobs = await AsyncQueue.create("jobs", maxsize=1, client=client)
    await jobs.put(1)
    async with AsyncRunner() as runner:

        async def wait() -> Any:
            return await jobs.put(2, timeout_s=math.inf, poll_interval_s=NEVER_POLLS_S)

        waiting = runner.start(wait)
        await runner.until(lambda: waiting_on(client.async_store, room_topic("jobs")) == 1)
        assert await jobs.get() == 1
        assert (await waiting.result()).created
    assert await jobs.get() == 2


async def test_several_at_once_wait_for_as_much_room(client: ControlPlaneClient, clock: FakeClock) -> None:
    jobs = await AsyncQueue.create("jobs", maxsize=2, client=client)
    await jobs.put_many([1, 2])
    async with AsyncRunner() as runner:

        async def wait() -> Any:
            return await jobs.put_many([3, 4], timeout_s=math.inf, poll_interval_s=1.0)

        waiting = runner.start(wait)
        assert await jobs.get_many(2) == [1, 2]
        clock.advance(1)
        assert len(await waiting.result()) == 2


async def test_more_than_the_queue_may_hold_does_not_wait_for_ever(client: ControlPlaneClient) -> None:
    jobs = await AsyncQueue.create("jobs", maxsize=2, client=client)
    with pytest.raises(QueueFull):
        await jobs.put_many([1, 2, 3], timeout_s=math.inf)


@pytest.mark.parametrize("timeout_s", [-1.0, math.nan])
async def test_bad_patience_is_refused(jobs: AsyncQueue[Any], timeout_s: float) -> None:
    with pytest.raises(ValueError, match="timeout_s"):
        await jobs.get(timeout_s=timeout_s)


async def test_a_paused_queue_hands_nothing_out(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1)
    await jobs.pause()
    assert await jobs.get() is None
    await jobs.resume()
    assert await jobs.get() == 1
