# Generated from tests/_async/handles/test_queue.py by tools/unasync.py; do not edit.
"""Putting into a queue and getting out of it."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from holdfast._sync.handles.queue import Queue
from holdfast.client import ControlPlaneClient
from holdfast.codec import MSGPACK
from holdfast.commands.topics import queue_topic, room_topic
from holdfast.errors import IdTaken, KeyInFlight, QueueFull
from holdfast.results import QueueResponse
from holdfast.testing.clock import START_US, FakeClock
from tests.runners import Runner, waiting_on

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
def jobs(client: ControlPlaneClient) -> Queue[Any]:
    return Queue.from_name("jobs", client=client)


def test_a_handle_touches_nothing_and_the_first_put_creates(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    assert Queue.list(client=client) == []
    assert jobs.length() == 0
    jobs.put(1)
    assert [queue.name for queue in Queue.list(client=client)] == ["jobs"]


def test_create_never_empties(client: ControlPlaneClient) -> None:
    jobs = Queue.create("jobs", client=client)
    jobs.put(1)
    again = Queue.create("jobs", client=client)
    assert again.get() == 1


def test_what_list_gives_reaches_the_same_store(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put(1)
    (found,) = Queue.list(prefix="jo", client=client)
    assert found.get() == 1
    assert Queue.list(prefix="x", client=client) == []


def test_values_come_out_in_the_order_they_were_put(jobs: Queue[Any]) -> None:
    jobs.put({"image_id": "img-1"})
    jobs.put_many([("a", 1), {2, 3}])
    assert jobs.length() == 3
    assert jobs.get() == {"image_id": "img-1"}
    assert jobs.get_many(10) == [("a", 1), {2, 3}]


def test_an_empty_queue_gives_the_default(jobs: Queue[Any]) -> None:
    assert jobs.get() is None
    assert jobs.get(default="nothing", timeout_s=0.0) == "nothing"
    assert jobs.get_many(3, timeout_s=0.001) == []


def test_putting_nothing_is_nothing(jobs: Queue[Any]) -> None:
    assert jobs.put_many([]) == []


def test_a_put_answers_the_id_and_whether_it_is_new(jobs: Queue[Any]) -> None:
    first = jobs.put(1, id="one")
    again = jobs.put(2, id="one")
    assert (first, first.created) == ("one", True)
    assert (again, again.created) == ("one", False)
    assert jobs.get_many(10) == [1]


def test_an_id_is_text_wherever_text_may_be(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    first = jobs.put(1)
    jobs.put({"after": first, first: [first]}, key=first, metadata={"id": first}, id=first + "-2")
    typed = Queue.from_name("typed", type=Job, client=client)
    typed.put(Job(first))
    claim = jobs.take(str(first), claimer="w")
    assert claim is not None
    assert (claim.value, claim.key, claim.metadata) == ({"after": first, first: [first]}, first, {"id": first})
    assert {type(claim.value["after"]), type(claim.key)} == {str}
    assert typed.get() == Job(first)


def test_clear_and_delete_say_how_much_was_there(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put_many([1, 2])
    assert jobs.clear() == QueueResponse(2)
    assert [queue.name for queue in Queue.list(client=client)] == ["jobs"]
    jobs.put(3)
    assert jobs.delete() == QueueResponse(1)
    assert Queue.list(client=client) == []


def test_a_higher_priority_goes_first(jobs: Queue[Any]) -> None:
    jobs.put("low")
    jobs.put("high", priority=5)
    assert jobs.get_many(2) == ["high", "low"]


def test_a_delayed_message_is_not_there_before_its_time(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put("later", delay_s=10)
    assert (jobs.length(), (jobs.stats()).delayed) == (1, 1)
    assert jobs.get() is None
    clock.advance(10)
    assert jobs.get() == "later"


def test_at_is_a_moment_of_the_wall_clock(jobs: Queue[Any], clock: FakeClock) -> None:
    now = datetime.fromtimestamp(START_US / 1_000_000, UTC)
    jobs.put("then", at=now + timedelta(seconds=10))
    assert jobs.get() is None
    clock.advance(10)
    assert jobs.get() == "then"


def test_a_moment_needs_a_time_zone_and_no_second_delay(jobs: Queue[Any]) -> None:
    with pytest.raises(ValueError, match="time zone"):
        jobs.put(1, at=datetime(2030, 1, 1))  # noqa: DTZ001 - what is refused
    with pytest.raises(ValueError, match="not both"):
        jobs.put(1, at=datetime(2030, 1, 1, tzinfo=UTC), delay_s=1)


def test_what_nobody_started_in_time_is_dropped(jobs: Queue[Any], clock: FakeClock) -> None:
    jobs.put("now or never", start_within_s=5)
    clock.advance(5)
    assert jobs.get() is None


def test_a_key_is_updated_while_it_waits(jobs: Queue[Any]) -> None:
    first = jobs.put("old", key="k")
    again = jobs.put("new", key="k")
    assert (again, again.created) == (first, False)
    assert jobs.get_many(2) == ["new"]


def test_keys_are_told_apart_by_type(jobs: Queue[Any]) -> None:
    jobs.put_many(["a", "b", "c"], keys=[1, "1", (1, "x")])
    assert jobs.length() == 3


def test_if_present_decides_for_both_states(jobs: Queue[Any]) -> None:
    jobs.put("first", key="k")
    kept = jobs.put("second", key="k", if_present="keep")
    assert not kept.created
    with pytest.raises(KeyInFlight):
        jobs.put("third", key="k", if_present="reject")
    assert jobs.take("k", claimer="w") is not None
    with pytest.raises(KeyInFlight):
        jobs.put("third", key="k", if_present="reject")
    jobs.put("third", key="k", if_present="buffer")
    assert (jobs.stats()).buffered == 1


def test_a_known_id_with_another_value_is_refused_if_the_put_says_so(jobs: Queue[Any]) -> None:
    jobs.put({"a": 1, "b": 2}, id="x", if_id="reject")
    assert not (jobs.put({"b": 2, "a": 1}, id="x", if_id="ignore")).created
    with pytest.raises(IdTaken):
        jobs.put("other", id="x", if_id="reject")


def test_a_key_is_put_once_in_its_time(jobs: Queue[Any]) -> None:
    first = jobs.put("a", key="k", unique_for_s=60.0)
    assert jobs.get() == "a"
    again = jobs.put("b", key="k", unique_for_s=60.0)
    assert (again, again.created) == (first, False)
    with pytest.raises(KeyInFlight):
        jobs.put("c", key="k", unique_for_s=60.0, if_recent="reject")


def test_a_postponed_message_has_the_last_value(jobs: Queue[Any]) -> None:
    jobs.put("a", key="k", delay_s=60.0)
    jobs.put("b", key="k", if_ready="postpone", delay_s=60.0, at_latest_s=0.0)
    assert jobs.get() == "b"


def test_a_policy_without_a_key_is_refused(jobs: Queue[Any]) -> None:
    with pytest.raises(ValueError, match="key="):
        jobs.put(1, if_present="keep")


def test_a_typed_queue_gives_back_its_type(client: ControlPlaneClient) -> None:
    jobs = Queue.create("jobs", type=Job, client=client)
    jobs.put(Job("a", 1))
    points = Queue.from_name("points", type=Point, client=client)
    points.put(Point(3))
    models = Queue.from_name("models", type=Model, client=client)
    models.put(Model(name="m"))
    assert (jobs.get(), points.get(), models.get()) == (Job("a", 1), Point(3), Model(name="m"))


def test_without_a_type_an_object_is_refused_with_a_hint(jobs: Queue[Any]) -> None:
    with pytest.raises(TypeError, match="type=Job"):
        jobs.put(Job("a"))
    assert jobs.length() == 0


def test_a_value_that_does_not_fit_the_type_is_not_lost(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    jobs.put({"no": "job"})
    with pytest.raises(ValueError, match="does not fit Job"):
        Queue.from_name("jobs", type=Job, client=client).get()
    assert jobs.get() == {"no": "job"}


def test_a_codec_of_ones_own(client: ControlPlaneClient) -> None:
    packed = Queue.create("packed", codec=MSGPACK, client=client)
    packed.put({"raw": b"1"})
    assert packed.get() == {"raw": b"1"}


def test_a_type_and_a_codec_are_one_too_many(client: ControlPlaneClient) -> None:
    with pytest.raises(ValueError, match="not both"):
        Queue.from_name("jobs", type=Job, codec=MSGPACK, client=client)  # type: ignore[call-overload] # what is refused


def test_a_put_wakes_who_waits(client: ControlPlaneClient, jobs: Queue[Any]) -> None:
    with Runner() as runner:

        def wait() -> Any:
            return jobs.get(timeout_s=math.inf, poll_interval_s=NEVER_POLLS_S)

        waiting = runner.start(wait)
        runner.until(lambda: waiting_on(client.store, queue_topic("jobs")) == 1)
        jobs.put("hello")
        assert waiting.result() == "hello"


def test_a_full_queue_refuses_at_once(client: ControlPlaneClient) -> None:
    jobs = Queue.create("jobs", maxsize=2, client=client)
    jobs.put_many([1, 2])
    with pytest.raises(QueueFull):
        jobs.put(3)
    with pytest.raises(QueueFull):
        jobs.put(3, timeout_s=0.001)
    jobs.configure(maxsize=None)
    jobs.put(3)


def test_creating_again_leaves_the_limit(client: ControlPlaneClient) -> None:
    Queue.create("jobs", maxsize=1, client=client)
    jobs = Queue.create("jobs", client=client)
    jobs.put(1)
    with pytest.raises(QueueFull):
        jobs.put(2)


def test_a_blocked_put_goes_on_when_there_is_room(client: ControlPlaneClient) -> None:
    jobs = Queue.create("jobs", maxsize=1, client=client)
    jobs.put(1)
    with Runner() as runner:

        def wait() -> Any:
            return jobs.put(2, timeout_s=math.inf, poll_interval_s=NEVER_POLLS_S)

        waiting = runner.start(wait)
        runner.until(lambda: waiting_on(client.store, room_topic("jobs")) == 1)
        assert jobs.get() == 1
        assert (waiting.result()).created
    assert jobs.get() == 2


def test_several_at_once_wait_for_as_much_room(client: ControlPlaneClient, clock: FakeClock) -> None:
    jobs = Queue.create("jobs", maxsize=2, client=client)
    jobs.put_many([1, 2])
    with Runner() as runner:

        def wait() -> Any:
            return jobs.put_many([3, 4], timeout_s=math.inf, poll_interval_s=1.0)

        waiting = runner.start(wait)
        assert jobs.get_many(2) == [1, 2]
        clock.advance(1)
        assert len(waiting.result()) == 2


def test_more_than_the_queue_may_hold_does_not_wait_for_ever(client: ControlPlaneClient) -> None:
    jobs = Queue.create("jobs", maxsize=2, client=client)
    with pytest.raises(QueueFull):
        jobs.put_many([1, 2, 3], timeout_s=math.inf)


@pytest.mark.parametrize("timeout_s", [-1.0, math.nan])
def test_bad_patience_is_refused(jobs: Queue[Any], timeout_s: float) -> None:
    with pytest.raises(ValueError, match="timeout_s"):
        jobs.get(timeout_s=timeout_s)


def test_a_paused_queue_hands_nothing_out(jobs: Queue[Any]) -> None:
    jobs.put(1)
    jobs.pause()
    assert jobs.get() is None
    jobs.resume()
    assert jobs.get() == 1
