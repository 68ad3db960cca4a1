"""Groups of a queue through its handle: settings, pauses, throttles, limits, and what they show."""

from typing import Any

import pytest

from holdfast import Backoff, Rate, Refused
from holdfast._async.handles.queue import AsyncQueue
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def jobs(client: ControlPlaneClient) -> AsyncQueue[Any]:
    return AsyncQueue("jobs", client=client)


async def claimed(jobs: AsyncQueue[Any], count: int = 1) -> list[Any]:
    """The values of the next claims, each by itself."""
    found = [await jobs.claim() for _ in range(count)]
    return [claim.value for claim in found if claim is not None]


async def test_fair_groups_take_turns_whoever_came_first(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="fair")
    await jobs.put_many([("a", n) for n in range(5)], group="a")
    await jobs.put_many([("b", n) for n in range(2)], group="b")
    await jobs.put("without")
    assert await claimed(jobs, 6) == [("a", 0), ("b", 0), "without", ("a", 1), ("b", 1), ("a", 2)]


async def test_without_groups_a_group_is_a_label(jobs: AsyncQueue[Any]) -> None:
    await jobs.put_many([0, 1], group="a")
    await jobs.put(2, group="b")
    assert [message.value for message in await jobs.browse(group="a")] == [0, 1]
    assert (await jobs.group("b").stats()).ready == 1
    assert await claimed(jobs, 3) == [0, 1, 2]


async def test_a_claim_shows_the_group_of_its_message(jobs: AsyncQueue[Any]) -> None:
    await jobs.put(1, group="a")
    await jobs.put(2)
    groups = [claim.group for claim in await jobs.claim_many(2)]
    assert groups == ["a", None]


async def test_a_group_with_a_weight_gives_so_many_in_each_turn(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="fair")
    await jobs.group("a").configure(weight=3)
    for group in ("a", "b"):
        await jobs.put_many([group] * 8, group=group)
    assert "".join(await claimed(jobs, 8)) in ("aaabaaab", "baaabaaa")


async def test_a_limit_of_a_group_holds_until_a_claim_of_it_ends(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="fair", group_limit=1)
    await jobs.put_many([0, 1], group="a")
    first = await jobs.claim()
    assert first is not None
    assert await jobs.claim() is None
    why = await jobs.explain((await jobs.browse(group="a"))[0])
    assert (why.reason, why.claimer) == ("group_busy", first.claimer)
    await first.ack()
    assert await claimed(jobs) == [1]


async def test_a_group_of_its_own_limit_returns_to_the_queues(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="fair", group_limit=1)
    await jobs.group("a").configure(limit=2)
    await jobs.put_many([0, 1, 2], group="a")
    assert len(await jobs.claim_many(3)) == 2
    (info,) = await jobs.groups()
    assert (info.name, info.live, info.limit, info.ready) == ("a", 2, 2, False)
    await jobs.group("a").configure(limit=None)
    assert [one.limit for one in await jobs.groups()] == [1]


async def test_a_strict_group_hands_out_one_at_a_time_and_in_order(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.configure(groups="strict", backoff=Backoff(10.0, jitter=0.0))
    ids = [await jobs.put(n, group="a", priority=n) for n in range(3)]
    first = await jobs.claim()
    assert first is not None
    assert first.value == 0
    assert (await jobs.explain(ids[1])).reason == "group_behind"
    await first.fail(error="not yet")
    assert await jobs.claim() is None
    why = await jobs.explain(ids[1])
    assert (why.reason, ids[0] in why.sentence) == ("group_behind", True)
    clock.advance(10.1)
    assert await claimed(jobs) == [0]


async def test_a_dead_head_holds_its_group_until_it_is_resumed(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="strict", group_dead="hold", max_attempts=1)
    first = await jobs.put("bad", group="a")
    second = await jobs.put("next", group="a")
    claim = await jobs.claim()
    assert claim is not None
    await claim.fail(error="broken")
    assert await jobs.claim() is None
    assert (await jobs.explain(second)).reason == "group_paused"
    info = await jobs.group("a").info()
    assert info is not None
    assert (info.paused, info.held_by) == (True, first)
    await jobs.group("a").resume()
    assert await claimed(jobs) == ["next"]


async def test_a_message_is_explained_by_its_own_group_however_many_there_are(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="fair")
    for number in range(1_003, 0, -1):
        await jobs.put(number, group=f"{number:04}")
    for group, ahead in (("1003", "is the next"), ("1001", "2 groups are"), ("0001", "more than 1,000 groups are")):
        (message,) = await jobs.browse(group=group)
        assert f"; {ahead}" in (await jobs.explain(message)).sentence.replace("its group ", "")


async def test_a_paused_group_lets_the_others_go_on(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="fair")
    await jobs.put("a", group="a")
    await jobs.put("b", group="b")
    await jobs.group("a").pause()
    assert await claimed(jobs, 2) == ["b"]
    await jobs.group("a").resume()
    assert await claimed(jobs) == ["a"]


async def test_a_throttled_queue_hands_nothing_out_for_a_time(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    message_id = await jobs.put(1)
    await jobs.throttle(30.0)
    assert await jobs.claim() is None
    assert (await jobs.explain(message_id)).reason == "throttled"
    clock.advance(30.1)
    assert await claimed(jobs) == [1]


async def test_a_throttled_group_hands_nothing_out_for_a_time(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.configure(groups="fair")
    message_id = await jobs.put("a", group="a")
    await jobs.put("b", group="b")
    await jobs.group("a").throttle(30.0)
    assert await claimed(jobs, 2) == ["b"]
    assert (await jobs.explain(message_id)).reason == "group_rate"
    clock.advance(30.1)
    assert await claimed(jobs) == ["a"]


async def test_a_rate_of_the_queue_lets_one_through_at_a_time(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.configure(rate=Rate(1, per_s=10.0))
    ids = await jobs.put_many([0, 1])
    assert await claimed(jobs, 2) == [0]
    assert (await jobs.explain(ids[1])).reason == "rate"
    clock.advance(10.1)
    assert await claimed(jobs) == [1]


async def test_a_limit_of_the_queue_is_a_reason(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(limit=1)
    ids = await jobs.put_many([0, 1])
    assert await claimed(jobs, 2) == [0]
    assert (await jobs.explain(ids[1])).reason == "limit"
    await jobs.configure(limit=None)
    assert await claimed(jobs) == [1]


async def test_explaining_a_turn(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="fair")
    await jobs.put("a", group="a")
    message_id = await jobs.put("b", group="b")
    why = await jobs.explain(message_id)
    assert (why.reason, "1 group is served before its own" in why.sentence) == ("turn", True)


async def test_a_group_without_settings_or_messages_is_forgotten(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="fair")
    acme = jobs.group("acme")
    await acme.configure(weight=5)
    assert [one.weight for one in await jobs.groups()] == [5]
    await acme.forget()
    assert await jobs.groups() == []
    assert await acme.info() is None


async def test_groups_are_listed_by_page_and_prefix(jobs: AsyncQueue[Any]) -> None:
    await jobs.configure(groups="fair")
    for name in ("eu/1", "eu/2", "us/1"):
        await jobs.put(1, group=name)
    first = await jobs.groups(limit=2)
    assert [one.name for one in first] == ["eu/1", "eu/2"]
    assert [one.name for one in await jobs.groups(after=first[-1])] == ["us/1"]
    assert [one.name for one in await jobs.groups(prefix="us")] == ["us/1"]


async def test_the_queue_says_how_long_a_claim_lasts_that_does_not_say_so(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.configure(lease_s=5.0)
    await jobs.put(1)
    claim = await jobs.claim()
    assert claim is not None
    clock.advance(5.1)
    assert claim.lost
    assert await claimed(jobs) == [1]
    await jobs.put(2)
    own = await jobs.claim(lease_s=60.0)
    assert own is not None
    clock.advance(6.0)
    assert not own.lost


async def test_what_is_done_can_be_looked_at_for_a_while(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.configure(keep_done_s=60.0)
    message_id = await jobs.put(1)
    claim = await jobs.claim(claimer="w")
    assert claim is not None
    await claim.ack()
    (seen,) = await jobs.browse(state="done")
    assert (seen.id, seen.state, seen.claimer, seen.done_at is not None) == (message_id, "done", "w", True)
    assert ((await jobs.stats()).done, await jobs.length()) == (1, 0)
    assert (await jobs.explain(message_id)).reason == "done"


async def test_lifo_hands_out_the_last_put_first(jobs: AsyncQueue[Any], clock: FakeClock) -> None:
    await jobs.configure(order="lifo")
    for value in range(3):
        await jobs.put(value)
        clock.advance(1.0)
    assert await claimed(jobs, 3) == [2, 1, 0]


async def test_what_cannot_be_is_refused_before_anything_is_sent(jobs: AsyncQueue[Any]) -> None:
    with pytest.raises(TypeError, match="configure has no option 'group_limits': did you mean 'group_limit'"):
        await jobs.configure(group_limits=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="weight"):
        await jobs.group("a").configure(weight=0)
    with pytest.raises(ValueError, match="own dead-letter queue"):
        await jobs.configure(dead_letter_queue="jobs")
    with pytest.raises(Refused):
        await jobs.configure(groups="strict", order="lifo")
