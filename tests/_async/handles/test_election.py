"""Election: campaign, observe, resign."""

import pytest

from holdfast._async.handles.election import AsyncElection
from holdfast.client import ControlPlaneClient
from holdfast.commands.topics import lease_topic, log_topic, watch_topic
from holdfast.errors import LockTimeout
from holdfast.results import DictResponse
from holdfast.testing.clock import FakeClock
from tests.runners import AsyncRunner, waiting_on

pytestmark = pytest.mark.anyio

KEY = '["election","cluster"]'


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def candidate(client: ControlPlaneClient, holder: str) -> AsyncElection:
    return AsyncElection("cluster", holder=holder, client=client, poll_interval_s=3_600.0)


async def test_whoever_campaigns_first_leads_until_it_resigns(client: ControlPlaneClient) -> None:
    first, second = candidate(client, "a"), candidate(client, "b")
    assert await first.leader() is None
    leadership = await first.campaign()
    assert first.is_leader
    async with AsyncRunner() as runner:
        waiting = runner.start(second.campaign)
        await runner.until(lambda: waiting_on(client.store, lease_topic(None, KEY)) == 1)
        assert not second.is_leader
        assert await first.resign() == DictResponse(1)
        assert (await waiting.result()).token > leadership.token
    leader = await first.leader()
    assert leader is not None
    assert leader.holder == "b"
    assert (first.is_leader, second.is_leader) == (False, True)


async def test_a_twin_of_the_handle_leads_and_resigns_too(client: ControlPlaneClient) -> None:
    election = candidate(client, "a")
    await election.campaign()
    assert election.aio.is_leader
    assert await election.resign() == DictResponse(1)
    assert not election.aio.is_leader


async def test_a_campaign_may_end_without_success(client: ControlPlaneClient) -> None:
    await candidate(client, "a").campaign()
    with pytest.raises(LockTimeout, match="election 'cluster' is held by 'a'"):
        await candidate(client, "b").campaign(timeout_s=0)


async def test_who_does_not_lead_resigns_from_nothing(client: ControlPlaneClient) -> None:
    assert await candidate(client, "a").resign() == DictResponse(0, 1)


async def test_a_body_leads_while_it_runs(client: ControlPlaneClient) -> None:
    election = candidate(client, "a")
    async with election as leadership:
        assert election.is_leader
        leadership.check()
    assert not election.is_leader
    assert await election.leader() is None


async def test_a_dead_leader_is_followed_by_the_next(client: ControlPlaneClient, clock: FakeClock) -> None:
    async with ControlPlaneClient.on(client.store) as dying:
        await candidate(dying, "a").campaign()
        dying.keepalive.close()
        async with AsyncRunner() as runner:
            waiting = runner.start(candidate(client, "b").campaign)
            await runner.until(lambda: waiting_on(client.store, lease_topic(None, KEY)) == 1)
            clock.advance(30)
            assert (await waiting.result()).holder == "b"


async def collect(election: AsyncElection, seen: list[tuple[str, int]], count: int) -> None:
    async for leader in election.observe():
        seen.append((leader.holder, leader.token))
        if len(seen) == count:
            return


async def test_leaders_are_observed_in_order_with_their_tokens(client: ControlPlaneClient) -> None:
    first = await candidate(client, "a").campaign()
    seen: list[tuple[str, int]] = []
    async with AsyncRunner() as runner:
        observing = runner.start(collect, candidate(client, "watcher"), seen, 3)
        await runner.until(lambda: waiting_on(client.store, watch_topic(log_topic(None, KEY))) == 1)
        await first.release()
        second = await candidate(client, "b").campaign()
        await second.release()
        third = await candidate(client, "c").campaign()
        await observing.result()
    assert seen == [("a", first.token), ("b", second.token), ("c", third.token)]


async def test_without_a_leader_the_first_one_is_waited_for(client: ControlPlaneClient) -> None:
    seen: list[tuple[str, int]] = []
    async with AsyncRunner() as runner:
        observing = runner.start(collect, candidate(client, "watcher"), seen, 1)
        await runner.until(lambda: waiting_on(client.store, watch_topic(log_topic(None, KEY))) == 1)
        leadership = await candidate(client, "a").campaign()
        await observing.result()
    assert seen == [("a", leadership.token)]
