# Generated from tests/_async/handles/test_election.py by tools/unasync.py; do not edit.
"""Election: campaign, observe, resign."""

import pytest

from holdfast._sync.handles.election import Election
from holdfast.client import ControlPlaneClient
from holdfast.commands.topics import lease_topic, log_topic, watch_topic
from holdfast.errors import LockTimeout
from holdfast.results import DictResponse
from holdfast.testing.clock import FakeClock
from tests.runners import Runner, waiting_on

KEY = '["election","cluster"]'


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def candidate(client: ControlPlaneClient, holder: str) -> Election:
    return Election("cluster", holder=holder, client=client, poll_interval_s=3_600.0)


def test_whoever_campaigns_first_leads_until_it_resigns(client: ControlPlaneClient) -> None:
    first, second = candidate(client, "a"), candidate(client, "b")
    assert first.leader() is None
    leadership = first.campaign()
    assert first.is_leader
    with Runner() as runner:
        waiting = runner.start(second.campaign)
        runner.until(lambda: waiting_on(client.store, lease_topic(None, KEY)) == 1)
        assert not second.is_leader
        assert first.resign() == DictResponse(1)
        assert (waiting.result()).token > leadership.token
    leader = first.leader()
    assert leader is not None
    assert leader.holder == "b"
    assert (first.is_leader, second.is_leader) == (False, True)


def test_a_twin_of_the_handle_leads_and_resigns_too(client: ControlPlaneClient) -> None:
    election = candidate(client, "a")
    election.campaign()
    assert election.aio.is_leader
    assert election.resign() == DictResponse(1)
    assert not election.aio.is_leader


def test_a_campaign_may_end_without_success(client: ControlPlaneClient) -> None:
    candidate(client, "a").campaign()
    with pytest.raises(LockTimeout, match="election 'cluster' is held by 'a'"):
        candidate(client, "b").campaign(timeout_s=0)


def test_who_does_not_lead_resigns_from_nothing(client: ControlPlaneClient) -> None:
    assert candidate(client, "a").resign() == DictResponse(0, 1)


def test_a_body_leads_while_it_runs(client: ControlPlaneClient) -> None:
    election = candidate(client, "a")
    with election as leadership:
        assert election.is_leader
        leadership.check()
    assert not election.is_leader
    assert election.leader() is None


def test_a_dead_leader_is_followed_by_the_next(client: ControlPlaneClient, clock: FakeClock) -> None:
    with ControlPlaneClient.on(client.store) as dying:
        candidate(dying, "a").campaign()
        dying.keepalive.close()
        with Runner() as runner:
            waiting = runner.start(candidate(client, "b").campaign)
            runner.until(lambda: waiting_on(client.store, lease_topic(None, KEY)) == 1)
            clock.advance(30)
            assert (waiting.result()).holder == "b"


def collect(election: Election, seen: list[tuple[str, int]], count: int) -> None:
    for leader in election.observe():
        seen.append((leader.holder, leader.token))
        if len(seen) == count:
            return


def test_leaders_are_observed_in_order_with_their_tokens(client: ControlPlaneClient) -> None:
    first = candidate(client, "a").campaign()
    seen: list[tuple[str, int]] = []
    with Runner() as runner:
        observing = runner.start(collect, candidate(client, "watcher"), seen, 3)
        runner.until(lambda: waiting_on(client.store, watch_topic(log_topic(None, KEY))) == 1)
        first.release()
        second = candidate(client, "b").campaign()
        second.release()
        third = candidate(client, "c").campaign()
        observing.result()
    assert seen == [("a", first.token), ("b", second.token), ("c", third.token)]


def test_without_a_leader_the_first_one_is_waited_for(client: ControlPlaneClient) -> None:
    seen: list[tuple[str, int]] = []
    with Runner() as runner:
        observing = runner.start(collect, candidate(client, "watcher"), seen, 1)
        runner.until(lambda: waiting_on(client.store, watch_topic(log_topic(None, KEY))) == 1)
        leadership = candidate(client, "a").campaign()
        observing.result()
    assert seen == [("a", leadership.token)]
