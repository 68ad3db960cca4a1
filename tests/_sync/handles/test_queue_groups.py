# Generated from tests/_async/handles/test_queue_groups.py by tools/unasync.py; do not edit.
"""Groups of a queue through its handle: settings, pauses, throttles, limits, and what they show."""

from typing import Any

import pytest

from holdfast import Backoff, Rate, Refused
from holdfast._sync.handles.queue import Queue
from holdfast.client import ControlPlaneClient
from holdfast.testing.clock import FakeClock


@pytest.fixture
def jobs(client: ControlPlaneClient) -> Queue[Any]:
    return Queue("jobs", client=client)


def claimed(jobs: Queue[Any], count: int = 1) -> list[Any]:
    """The values of the next claims, each by itself."""
    found = [jobs.claim() for _ in range(count)]
    return [claim.value for claim in found if claim is not None]


def test_fair_groups_take_turns_whoever_came_first(jobs: Queue[Any]) -> None:
    jobs.configure(groups="fair")
    jobs.put_many([("a", n) for n in range(5)], group="a")
    jobs.put_many([("b", n) for n in range(2)], group="b")
    jobs.put("without")
    assert claimed(jobs, 6) == [("a", 0), ("b", 0), "without", ("a", 1), ("b", 1), ("a", 2)]


def test_without_groups_a_group_is_a_label(jobs: Queue[Any]) -> None:
    jobs.put_many([0, 1], group="a")
    jobs.put(2, group="b")
    assert [message.value for message in jobs.browse(group="a")] == [0, 1]
    assert (jobs.group("b").stats()).ready == 1
    assert claimed(jobs, 3) == [0, 1, 2]


def test_a_claim_shows_the_group_of_its_message(jobs: Queue[Any]) -> None:
    jobs.put(1, group="a")
    jobs.put(2)
    groups = [claim.group for claim in jobs.claim_many(2)]
    assert groups == ["a", None]


def test_a_group_with_a_weight_gives_so_many_in_each_turn(jobs: Queue[Any]) -> None:
    jobs.configure(groups="fair")
    jobs.group("a").configure(weight=3)
    for group in ("a", "b"):
        jobs.put_many([group] * 8, group=group)
    assert "".join(claimed(jobs, 8)) in ("aaabaaab", "baaabaaa")


def test_a_limit_of_a_group_holds_until_a_claim_of_it_ends(jobs: Queue[Any]) -> None:
    jobs.configure(groups="fair", group_limit=1)
    jobs.put_many([0, 1], group="a")
    first = jobs.claim()
    assert first is not None
    assert jobs.claim() is None
    why = jobs.explain((jobs.browse(group="a"))[0])
    assert (why.reason, why.claimer) == ("group_busy", first.claimer)
    first.ack()
    assert claimed(jobs) == [1]


def test_a_group_of_its_own_limit_returns_to_the_queues(jobs: Queue[Any]) -> None:
    jobs.configure(groups="fair", group_limit=1)
    jobs.group("a").configure(limit=2)
    jobs.put_many([0, 1, 2], group="a")
    assert len(jobs.claim_many(3)) == 2
    (info,) = jobs.groups()
    assert (info.name, info.live, info.limit, info.ready) == ("a", 2, 2, False)
    jobs.group("a").configure(limit=None)
    assert [one.limit for one in jobs.groups()] == [1]


def test_a_strict_group_hands_out_one_at_a_time_and_in_order(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.configure(groups="strict", backoff=Backoff(10.0, jitter=0.0))
    ids = [jobs.put(n, group="a", priority=n) for n in range(3)]
    first = jobs.claim()
    assert first is not None
    assert first.value == 0
    assert (jobs.explain(ids[1])).reason == "group_behind"
    first.fail(error="not yet")
    assert jobs.claim() is None
    why = jobs.explain(ids[1])
    assert (why.reason, ids[0] in why.sentence) == ("group_behind", True)
    clock.advance(10.1)
    assert claimed(jobs) == [0]


def test_a_dead_head_holds_its_group_until_it_is_resumed(jobs: Queue[Any]) -> None:
    jobs.configure(groups="strict", group_dead="hold", max_attempts=1)
    first = jobs.put("bad", group="a")
    second = jobs.put("next", group="a")
    claim = jobs.claim()
    assert claim is not None
    claim.fail(error="broken")
    assert jobs.claim() is None
    assert (jobs.explain(second)).reason == "group_paused"
    info = jobs.group("a").info()
    assert info is not None
    assert (info.paused, info.held_by) == (True, first)
    jobs.group("a").resume()
    assert claimed(jobs) == ["next"]


def test_a_message_is_explained_by_its_own_group_however_many_there_are(jobs: Queue[Any]) -> None:
    jobs.configure(groups="fair")
    for number in range(1_003, 0, -1):
        jobs.put(number, group=f"{number:04}")
    for group, ahead in (("1003", "is the next"), ("1001", "2 groups are"), ("0001", "more than 1,000 groups are")):
        (message,) = jobs.browse(group=group)
        assert f"; {ahead}" in (jobs.explain(message)).sentence.replace("its group ", "")


def test_a_paused_group_lets_the_others_go_on(jobs: Queue[Any]) -> None:
    jobs.configure(groups="fair")
    jobs.put("a", group="a")
    jobs.put("b", group="b")
    jobs.group("a").pause()
    assert claimed(jobs, 2) == ["b"]
    jobs.group("a").resume()
    assert claimed(jobs) == ["a"]


def test_a_throttled_queue_hands_nothing_out_for_a_time(jobs: Queue[Any], clock: FakeClock) -> None:
    message_id = jobs.put(1)
    jobs.throttle(30.0)
    assert jobs.claim() is None
    assert (jobs.explain(message_id)).reason == "throttled"
    clock.advance(30.1)
    assert claimed(jobs) == [1]


def test_a_throttled_group_hands_nothing_out_for_a_time(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.configure(groups="fair")
    message_id = jobs.put("a", group="a")
    jobs.put("b", group="b")
    jobs.group("a").throttle(30.0)
    assert claimed(jobs, 2) == ["b"]
    assert (jobs.explain(message_id)).reason == "group_rate"
    clock.advance(30.1)
    assert claimed(jobs) == ["a"]


def test_a_rate_of_the_queue_lets_one_through_at_a_time(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.configure(rate=Rate(1, per_s=10.0))
    ids = jobs.put_many([0, 1])
    assert claimed(jobs, 2) == [0]
    assert (jobs.explain(ids[1])).reason == "rate"
    clock.advance(10.1)
    assert claimed(jobs) == [1]


def test_a_limit_of_the_queue_is_a_reason(jobs: Queue[Any]) -> None:
    jobs.configure(limit=1)
    ids = jobs.put_many([0, 1])
    assert claimed(jobs, 2) == [0]
    assert (jobs.explain(ids[1])).reason == "limit"
    jobs.configure(limit=None)
    assert claimed(jobs) == [1]


def test_explaining_a_turn(jobs: Queue[Any]) -> None:
    jobs.configure(groups="fair")
    jobs.put("a", group="a")
    message_id = jobs.put("b", group="b")
    why = jobs.explain(message_id)
    assert (why.reason, "1 group is served before its own" in why.sentence) == ("turn", True)


def test_a_group_without_settings_or_messages_is_forgotten(jobs: Queue[Any]) -> None:
    jobs.configure(groups="fair")
    acme = jobs.group("acme")
    acme.configure(weight=5)
    assert [one.weight for one in jobs.groups()] == [5]
    acme.forget()
    assert jobs.groups() == []
    assert acme.info() is None


def test_groups_are_listed_by_page_and_prefix(jobs: Queue[Any]) -> None:
    jobs.configure(groups="fair")
    for name in ("eu/1", "eu/2", "us/1"):
        jobs.put(1, group=name)
    first = jobs.groups(limit=2)
    assert [one.name for one in first] == ["eu/1", "eu/2"]
    assert [one.name for one in jobs.groups(after=first[-1])] == ["us/1"]
    assert [one.name for one in jobs.groups(prefix="us")] == ["us/1"]


def test_the_queue_says_how_long_a_claim_lasts_that_does_not_say_so(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.configure(lease_s=5.0)
    jobs.put(1)
    claim = jobs.claim()
    assert claim is not None
    clock.advance(5.1)
    assert claim.lost
    assert claimed(jobs) == [1]
    jobs.put(2)
    own = jobs.claim(lease_s=60.0)
    assert own is not None
    clock.advance(6.0)
    assert not own.lost


def test_what_is_done_can_be_looked_at_for_a_while(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.configure(keep_done_s=60.0)
    message_id = jobs.put(1)
    claim = jobs.claim(claimer="w")
    assert claim is not None
    claim.ack()
    (seen,) = jobs.browse(state="done")
    assert (seen.id, seen.state, seen.claimer, seen.done_at is not None) == (message_id, "done", "w", True)
    assert ((jobs.stats()).done, jobs.length()) == (1, 0)
    assert (jobs.explain(message_id)).reason == "done"


def test_lifo_hands_out_the_last_put_first(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.configure(order="lifo")
    for value in range(3):
        jobs.put(value)
        clock.advance(1.0)
    assert claimed(jobs, 3) == [2, 1, 0]


def test_what_cannot_be_is_refused_before_anything_is_sent(jobs: Queue[Any]) -> None:
    with pytest.raises(TypeError, match="configure has no option 'group_limits': did you mean 'group_limit'"):
        jobs.configure(group_limits=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="weight"):
        jobs.group("a").configure(weight=0)
    with pytest.raises(ValueError, match="own dead-letter queue"):
        jobs.configure(dead_letter_queue="jobs")
    with pytest.raises(Refused):
        jobs.configure(groups="strict", order="lifo")
