"""What was stored since 0.1.0 goes on, too: groups, policies, shares, rates, schedules, steps and flows.

A fixture without them was written by a release that has none. All tests of one kind of store use one copy of it, each another part.
"""

from typing import Any

import pytest
from msgspec import convert, json

from holdfast import ControlPlaneClient, Job, Limiter, RateLimited, Schedule
from holdfast._sync.flows.ticking import Ticker
from holdfast.commands import Acquire, Browse, Claim, Configure, Groups, LeaseName, Move, Release, Resize, Settle
from holdfast.records import Receipt
from holdfast.stores import Store
from holdfast.testing.conformance.asking import ids, put
from holdfast.testing.everything import miscounts
from holdfast.testing.lane_rules import broken_rules
from tests.stored.loading import KINDS, NEWER, facts_of, load
from tools.stored_newer import GPU, LONG_S, POOL, SCARCE, tasks_of


@pytest.fixture(scope="module", params=[(release, kind) for release in NEWER for kind in KINDS], ids="-".join)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """The URL of a store, and what was written there."""
    release, kind = request.param
    return load(release, kind, tmp_path_factory.mktemp("stored")), facts_of(release)[kind]


def claimed(store: Store, queue: str, newest: int) -> list[str]:
    """What is handed out now, under tokens above all before."""
    messages = store.execute(Claim(queue, "worker-9", 30.0, 100)).messages
    assert all(message.token > newest for message in messages)
    return ids(messages)


def test_groups_go_on_with_their_limits_turns_and_claims(store: Store, known: dict[str, Any], newest: int) -> None:
    assert miscounts(store, ["fair", "strict", "stack", "halted"]) == []
    for queue in ("fair", "strict"):
        assert broken_rules(store, queue, store.execute(Groups(queue)).now) == []
    assert ids(store.execute(Browse("fair", state="done")).messages) == [known["done"]]
    assert claimed(store, "fair", newest) == ["a4"]
    held = [convert(receipt, Receipt) for receipt in known["fair"]]
    assert store.execute(Settle(held)).held == [True] * len(held)
    store.execute(Configure("queue", "fair", group="b", paused=False))
    assert claimed(store, "fair", newest) == ["b2"], "group c is not due, group d is throttled"
    assert store.execute(Move("fair", "due", [known["failed"], "c1"])).ids
    assert sorted(claimed(store, "fair", newest)) == ["a2", "c1"]


def test_a_strict_group_waits_for_its_first_and_one_that_is_held_for_its_redrive(store: Store, known: dict[str, Any], newest: int) -> None:
    assert claimed(store, "strict", newest) == []
    assert store.execute(Settle([convert(known["strict"], Receipt)])).held == [True]
    assert claimed(store, "strict", newest) == ["y2"]
    store.execute(Move("strict", "ready", ["x1"]))
    assert claimed(store, "strict", newest) == ["x1"]


def test_orders_pauses_throttles_labels_and_unique_keys_are_kept(store: Store, newest: int) -> None:
    assert claimed(store, "stack", newest) == ["s2", "s1"]
    store.execute(Configure("queue", "halted", paused=False))
    assert claimed(store, "halted", newest) == []
    store.execute(Configure("queue", "halted", throttle_s=0.0))
    assert claimed(store, "halted", newest) == ["h1"]
    (labelled,) = store.execute(Claim("labelled", "worker-9", 30.0)).messages
    assert (labelled.labels, labelled.group) == (("red",), "g")
    assert put(store, "u2", queue="unique", key="digest", unique_for_s=LONG_S).ids == ["u1"]


def test_shares_are_held_waited_for_and_granted_in_line(store: Store, known: dict[str, Any], newest: int) -> None:
    second = Acquire(None, GPU, "holder-2", "gpu-2", LONG_S, capacity=3, weight=2, in_line_s=LONG_S)
    found = store.execute(second)
    assert (found.lease.token, found.lease.holder, found.place) == (known["gpu"], "holder-1", 1)
    assert store.execute(Release([LeaseName(None, GPU, "gpu-1")])).held == [True]
    assert store.execute(second).lease.token > newest
    large = store.execute(Acquire(None, POOL, "holder-3", "pool-1", 30.0, capacity=1))
    assert large.lease.token > newest
    assert store.execute(Resize(POOL, None)).used == 1


def test_a_rate_that_was_used_up_still_is(stored: tuple[str, Any]) -> None:
    with ControlPlaneClient(stored[0]) as client:
        limiter = Limiter("published", SCARCE, client=client)
        with pytest.raises(RateLimited) as caught:
            limiter.acquire(key="ann")
        assert 0 < caught.value.due_in_s <= SCARCE.per_s
        limiter.acquire(key="bob")


def test_schedules_put_what_is_due_once(stored: tuple[str, Any], store: Store) -> None:
    for name in ("one", "another"):
        Ticker(store, name).tick()
    (run,) = store.execute(Browse("reports")).messages
    assert (run.id.partition("@")[0], json.decode(run.value)) == ("hourly", {"kind": "hourly"})
    with ControlPlaneClient(stored[0]) as client:
        hourly, nightly = (Schedule.from_name(name, client=client).status() for name in ("hourly", "nightly"))
        assert hourly.runs >= 1, "an hour may begin while this runs"
        assert (hourly.paused, nightly.paused, nightly.tz) == (None, "on holiday", "Europe/Berlin")


def never_again(order: str) -> str:
    raise AssertionError(f"{order} was charged before, and the step is recorded")


def test_a_durable_job_and_a_flow_go_on_behind_what_is_recorded(stored: tuple[str, Any], known: dict[str, Any]) -> None:
    with ControlPlaneClient(stored[0]) as client:
        payment, flow = (Job[Any]("stored", known[name], client=client) for name in ("payment", "flow"))
        assert payment.status().state == "sleeping"
        assert payment.send("approved", "ann")
        tasks_of(stored[0], never_again).run(until_empty=True)
        assert payment.result(timeout_s=60.0) == "order 1 is charged, approved by ann"
        assert flow.result(timeout_s=60.0)["both"] == [8, 9]
