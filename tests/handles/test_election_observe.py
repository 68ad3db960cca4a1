"""Observing an election from behind: what is gone from the log is not known any more, who leads now always is."""

from contextlib import closing

from holdfast._sync.handles.election import Election
from holdfast.client import ControlPlaneClient
from holdfast.commands import Prune
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock


def lead_once(client: ControlPlaneClient, holder: str) -> None:
    with Election("cluster", holder=holder, client=client):
        pass


def test_who_is_too_far_behind_sees_the_leader_of_now() -> None:
    clock = FakeClock()
    with ControlPlaneClient.on(MemoryStore(clock=clock)) as client:
        first = Election("cluster", holder="a", client=client)
        first.campaign()
        with closing(first.observe()) as leaders:
            assert next(leaders).holder == "a"
            first.resign()
            lead_once(client, "b")
            Election("cluster", holder="c", lease_s=3_600.0, client=client).campaign()
            clock.advance(600)
            client.store.execute(Prune(keep=0, keep_s=300))
            assert next(leaders).holder == "c"


def test_a_leader_whose_event_is_gone_is_still_seen() -> None:
    clock = FakeClock()
    with ControlPlaneClient.on(MemoryStore(clock=clock)) as client:
        leadership = Election("cluster", holder="a", lease_s=3_600.0, client=client).campaign()
        clock.advance(600)
        client.store.execute(Prune(keep=0, keep_s=300))
        with closing(Election("cluster", client=client).observe()) as leaders:
            seen = next(leaders)
        assert (seen.holder, seen.token) == ("a", leadership.token)
