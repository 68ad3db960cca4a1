# Generated from tests/_async/handles/test_watch.py by tools/unasync.py; do not edit.
"""Watching through the handles: typed values, keys as they were written, and one form of event for queues, dicts and leases."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast._sync.handles.mapping import Dict
from holdfast._sync.handles.queue import Queue
from holdfast.client import ControlPlaneClient
from holdfast.commands import Prune
from holdfast.errors import Closed, Compacted
from holdfast.stores.memory import MemoryStore
from holdfast.testing import FakeClock


@dataclass
class Job:
    picture: str


@pytest.fixture(params=["memory", "sqlite", "lmdb"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControlPlaneClient]:
    with ControlPlaneClient("memory://" if request.param == "memory" else f"{request.param}:///{tmp_path}/store") as opened:
        yield opened


def test_values_are_of_the_type_of_the_handle(client: ControlPlaneClient) -> None:
    shared = Dict.create("state", type=Job, client=client)
    jobs = Queue.create("jobs", type=Job, client=client)
    shared.put(("user", 7), Job("cat.png"))
    jobs.put(Job("dog.png"), key=b"k")
    entries = [event.data for event in shared.watch(snapshot=True, timeout_s=0.0) if event.event == "snapshot"]
    written = [event.data for event in shared.watch(timeout_s=0.0) if event.event == "written"]
    messages = [event.data for event in jobs.watch(snapshot=True, timeout_s=0.0) if event.event == "snapshot"]
    assert entries == written
    assert (entries[0]["key"], entries[0]["value"]) == (("user", 7), Job("cat.png"))
    assert (messages[0]["keys"], messages[0]["value"]) == ([b"k"], Job("dog.png"))


def test_a_queue_is_watched_by_key_and_by_prefix(client: ControlPlaneClient) -> None:
    jobs = Queue.create("jobs", client=client)
    jobs.put_many(["cat", "dog", "ape"], keys=[("user", 1), ("user", 2), "user"])
    one = [event.data for event in jobs.watch(key=("user", 2), timeout_s=0.0) if event.event == "put"]
    some = [event.data["keys"] for event in jobs.watch(prefix=("user",), timeout_s=0.0) if event.event == "put"]
    assert len(one[0]["ids"]) == 1
    assert (one[0]["keys"], some) == ([("user", 2)], [[("user", 1), ("user", 2)]])
    shown = [event.data["value"] for event in jobs.watch(key="user", snapshot=True, timeout_s=0.0) if event.event == "snapshot"]
    assert shown == ["ape"]


def test_a_key_and_a_prefix_at_once_are_refused(client: ControlPlaneClient) -> None:
    with pytest.raises(ValueError, match="not both"):
        Queue.from_name("jobs", client=client).watch(key="a", prefix="a")
    with pytest.raises(ValueError, match="not both"):
        Dict.from_name("state", client=client).watch(key="a", prefix="a")


def test_tokens_and_revisions_are_those_of_the_calls(client: ControlPlaneClient) -> None:
    shared = Dict.create("state", client=client)
    jobs = Queue.create("jobs", client=client)
    jobs.put("paint")
    claim = jobs.claim(claimer="w")
    lease = shared.acquire_lease("a", holder="h")
    result = shared.put_if_absent("a", 1)
    assert claim is not None
    assert [event.data["token"] for event in jobs.watch(timeout_s=0.0) if event.event == "claimed"] == [claim.token]
    events = [event for event in shared.watch(key="a", timeout_s=0.0) if event.event != "configured"]
    assert [(event.event, event.data.get("token"), event.data.get("revision")) for event in events] == [
        ("acquired", lease.token, None),
        ("written", None, result.revision),
    ]


def test_a_lease_that_expired_has_a_holder_and_an_entry_that_expired_has_none() -> None:
    clock = FakeClock()
    with ControlPlaneClient.on(MemoryStore(clock=clock)) as client:
        shared = Dict.create("state", client=client)
        shared.put("a", 1, ttl_s=10.0)
        shared.acquire_lease("a", holder="first", lease_s=10.0)
        clock.advance(10.0)
        shared.acquire_lease("a", holder="second", lease_s=10.0)
        client.store.execute(Prune())
        expired = [event.data for event in shared.watch(timeout_s=0.0) if event.event == "expired"]
    assert expired == [{"key": "a", "holder": "first"}, {"key": "a"}]


def test_a_slow_watcher_learns_that_events_are_gone() -> None:
    clock = FakeClock()
    with ControlPlaneClient.on(MemoryStore(clock=clock)) as client:
        jobs = Queue.create("jobs", client=client)

        def follow() -> None:
            for event in jobs.watch():
                assert event.event == "configured"
                jobs.put("never seen")
                clock.advance(600.0)
                jobs.put("seen by others")
                client.store.execute(Prune(keep_s=300.0))

        with pytest.raises(Compacted):
            follow()


def test_closing_the_client_ends_a_watch(client: ControlPlaneClient) -> None:
    jobs = Queue.create("jobs", client=client)

    def follow() -> None:
        for _ in jobs.watch():
            client.close()

    with pytest.raises(Closed):
        follow()
