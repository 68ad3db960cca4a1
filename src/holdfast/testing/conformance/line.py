"""The order in which a queue hands out its messages, and when each is due."""

from msgspec import json

from holdfast.commands import Claim, Put
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, drain, event_names, events, ids, item, last_event, look, put, settle, value
from holdfast.testing.conformance.factory import Conformance


class LineConformance(Conformance):
    """Priority first, then position; what is delayed lines up at the moment it becomes due."""

    def test_messages_come_out_in_the_order_they_went_in(self, store: Store, clock: FakeClock) -> None:
        for message_id in "abc":
            put(store, message_id)
            clock.advance(1)
        assert drain(store) == ["a", "b", "c"]

    def test_a_batch_keeps_its_order(self, store: Store) -> None:
        put(store, *[f"{number:04}" for number in range(1_000)])
        assert drain(store) == [f"{number:04}" for number in range(1_000)]

    def test_a_message_comes_back_with_the_value_and_metadata_it_was_put_with(self, store: Store) -> None:
        store.execute(Put(JOBS, [item("a", {"text": "ä€\U0001f600", "numbers": [1, 2.5, None]}, metadata=item("m", {"from": "us"}).value)]))
        (message,) = claim(store)
        assert value(message) == {"text": "ä€\U0001f600", "numbers": [1, 2.5, None]}
        assert message.metadata is not None
        assert bytes(message.metadata) == b'{"from":"us"}'

    def test_higher_priorities_come_first(self, store: Store) -> None:
        for priority in (0, -5, 2**31 - 1, 7, -(2**31)):
            put(store, str(priority), priority=priority)
        assert drain(store) == ["2147483647", "7", "0", "-5", "-2147483648"]

    def test_within_a_priority_the_older_comes_first(self, store: Store, clock: FakeClock) -> None:
        for message_id, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
            put(store, message_id, priority=priority)
            clock.advance(1)
        assert drain(store) == ["b", "d", "a", "c"]

    def test_a_limit_takes_the_first_across_priorities(self, store: Store) -> None:
        put(store, "low-1", "low-2")
        put(store, "high", priority=1)
        assert ids(claim(store, 2)) == ["high", "low-1"]

    def test_a_delayed_message_is_not_handed_out_early(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", delay_s=10)
        clock.advance(9.999999)
        assert drain(store) == []
        clock.advance(0.000001)
        assert drain(store) == ["a"]

    def test_a_delayed_message_stands_where_its_due_moment_puts_it(self, store: Store, clock: FakeClock) -> None:
        put(store, "delayed", delay_s=5)
        clock.advance(3)
        put(store, "before")
        clock.advance(3)
        put(store, "after")
        assert drain(store) == ["before", "delayed", "after"]

    def test_a_delayed_message_of_high_priority_does_not_hide_a_due_one_of_low_priority(self, store: Store) -> None:
        put(store, "later", delay_s=60, priority=9)
        put(store, "now")
        assert drain(store) == ["now"]

    def test_a_message_for_a_moment_of_the_wall_clock_waits_for_it(self, store: Store, clock: FakeClock) -> None:
        clock.step_wall(3_600)
        put(store, "a", at=clock.wall_us() + 10_000_000)
        clock.advance(9.999999)
        assert drain(store) == []
        clock.advance(0.000001)
        assert drain(store) == ["a"]

    def test_a_moment_that_has_passed_is_now(self, store: Store, clock: FakeClock) -> None:
        put(store, "first")
        clock.advance(1)
        put(store, "second", at=clock.wall_us() - 60_000_000)
        assert drain(store) == ["first", "second"]

    def test_of_a_delay_and_a_moment_the_later_counts(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", delay_s=5, at=clock.wall_us() + 10_000_000)
        put(store, "b", delay_s=10, at=clock.wall_us() + 5_000_000)
        clock.advance(9)
        assert drain(store) == []
        clock.advance(1)
        assert drain(store) == ["a", "b"]

    def test_a_step_of_the_wall_clock_moves_no_lease_and_no_delay(self, store: Store, clock: FakeClock) -> None:
        put(store, "held")
        held = claim(store, lease_s=60)
        put(store, "delayed", delay_s=60)
        clock.step_wall(86_400)
        assert drain(store) == []
        clock.step_wall(-2 * 86_400)
        clock.advance(59)
        assert settle(store, held) == [True]

    def test_an_empty_claim_says_when_time_alone_will_change_that(self, store: Store, clock: FakeClock) -> None:
        put(store, "delayed", delay_s=20)
        assert store.execute(Claim(JOBS)).due_in_s == 20
        put(store, "held")
        claim(store, lease_s=8)
        clock.advance(3)
        assert store.execute(Claim(JOBS)).due_in_s == 5

    def test_an_empty_claim_of_a_queue_that_time_cannot_fill_says_so(self, store: Store) -> None:
        assert store.execute(Claim(JOBS)).due_in_s is None
        put(store, "a")
        claim(store, lease_s=None)
        assert store.execute(Claim(JOBS)).due_in_s is None

    def test_a_message_not_started_in_time_is_dropped_and_an_event_says_so(self, store: Store, clock: FakeClock) -> None:
        put(store, "late", start_within_s=10)
        put(store, "patient")
        clock.advance(10)
        assert drain(store) == ["patient"]
        assert look(store, "late") is None
        assert "expired" in event_names(store)

    def test_a_message_may_be_started_until_its_last_moment(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", start_within_s=10)
        clock.advance(9.999999)
        assert drain(store) == ["a"]

    def test_a_delay_does_not_use_up_the_time_to_start(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", delay_s=60, start_within_s=10)
        clock.advance(65)
        assert drain(store) == ["a"]

    def test_a_message_that_was_started_in_time_comes_back_later_than_that(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", start_within_s=10)
        claim(store, lease_s=30)
        clock.advance(60)
        assert drain(store) == ["a"]

    def test_a_key_whose_message_was_not_started_in_time_takes_new_work(self, store: Store, clock: FakeClock) -> None:
        put(store, "late", key='"k"', start_within_s=10)
        clock.advance(10)
        put(store, "new", key='"k"')
        assert drain(store) == ["new"], "a put under the key of a message that was too late was lost with it"

    def test_messages_that_a_put_finds_too_late_are_told_of_in_the_order_they_went_in(self, store: Store, clock: FakeClock) -> None:
        store.execute(Put(JOBS, [item("b", key='"b"', start_within_s=10), item("a", key='"a"', start_within_s=10)]))
        clock.advance(10)
        store.execute(Put(JOBS, [item("c", key='"a"'), item("d", key='"b"')]))
        late = next(json.decode(event.data) for event in events(store) if event.event == "expired")
        assert (late["ids"], late["keys"]) == (["b", "a"], ['"b"', '"a"'])

    def test_many_late_messages_do_not_hide_one_that_is_due(self, store: Store, clock: FakeClock) -> None:
        put(store, *[f"late-{number}" for number in range(300)], start_within_s=1)
        clock.advance(2)
        put(store, "due")
        assert ids(claim(store)) == ["due"]
        name, data = last_event(store)
        assert name == "claimed"
        assert data["ids"] == ["due"]
