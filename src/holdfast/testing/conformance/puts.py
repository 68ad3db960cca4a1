"""What a put may ask for beyond its key: that an id has one value, that a message is postponed, that a key is unique for a time."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.commands import Put, Puts, Together
from holdfast.commands.recent import recent_dict
from holdfast.errors import IdTaken, KeyInFlight
from holdfast.records import moment_in
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, claim_one, drain, item, look, move, put, read, see, settle, stats, value, write
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.threads import together

KEY = '"k"'
RECENT = recent_dict(JOBS)
PRODUCERS = 64

ENDS: dict[str, Callable[[Store], object]] = {
    "done": lambda store: settle(store, claim(store)),
    "taken": drain,
    "dead": lambda store: settle(store, claim(store), to="dead"),
    "removed": lambda store: move(store, "gone", ids=["first"]),
}
"""What may become of a message."""


class PutConformance(Conformance):
    """A put that asks for more than the default."""

    @pytest.mark.parametrize("state", ["ready", "leased", "dead"])
    def test_another_value_under_a_known_id_is_refused_if_the_put_says_so(self, store: Store, state: str) -> None:
        put(store, "a")
        if state != "ready":
            held = claim(store)
            settle(store, held if state == "dead" else [], to="dead")
        with pytest.raises(IdTaken):
            store.execute(Put(JOBS, [item("b"), item("a", "another", if_id="reject")]))
        assert (see(store, "a").state, value(see(store, "a")), look(store, "b")) == (state, "a", None)

    def test_the_same_value_under_a_known_id_is_ignored(self, store: Store) -> None:
        put(store, "a")
        answer = put(store, "a", "b", if_id="reject")
        assert (answer.ids, answer.created) == (["a", "b"], [False, True])

    def test_values_of_one_batch_are_compared_too(self, store: Store) -> None:
        with pytest.raises(IdTaken):
            store.execute(Put(JOBS, [item("a"), item("a", "another", if_id="reject")]))
        assert stats(store).total == 0

    def test_an_id_is_compared_with_the_value_that_the_same_batch_gave_it(self, store: Store) -> None:
        put(store, "a", key=KEY)
        update = item("b", "new", key=KEY)
        with pytest.raises(IdTaken):
            store.execute(Put(JOBS, [update, item("a", "a", if_id="reject")]))
        assert store.execute(Put(JOBS, [update, item("a", "new", if_id="reject")])).created == [False, False]

    def test_a_known_id_with_another_value_refuses_a_whole_step(self, store: Store) -> None:
        put(store, "a")
        with pytest.raises(IdTaken):
            store.execute(Together([Put("others", [item("b")]), Put(JOBS, [item("a", "another", if_id="reject")])]))
        assert stats(store, "others").total == 0

    def test_a_message_that_is_postponed_is_due_when_the_last_put_says(self, store: Store, clock: FakeClock) -> None:
        for number in range(5):
            answer = postpone(store, str(number), delay_s=10)
            assert (answer.ids, answer.created) == (["0"], [number == 0])
            clock.advance(9)
        assert claim(store) == []
        clock.advance(1)
        found = claim_one(store)
        assert (found.id, value(found)) == ("0", "4")

    def test_a_message_is_postponed_only_so_far(self, store: Store, clock: FakeClock) -> None:
        for number in range(3):
            postpone(store, str(number), delay_s=10, at_latest_s=25)
            clock.advance(9)
        assert see(store, "0").position == see(store, "0").created_at + moment_in(25)
        assert value(claim_one(store)) == "2", "27 seconds have passed"

    def test_postponing_may_also_bring_a_message_forward(self, store: Store) -> None:
        postpone(store, "a", delay_s=60)
        assert claim(store) == []
        postpone(store, "b")
        assert value(claim_one(store)) == "b"

    def test_the_time_to_start_a_message_moves_with_it(self, store: Store, clock: FakeClock) -> None:
        postpone(store, "a", delay_s=10, start_within_s=5)
        clock.advance(9)
        postpone(store, "b", delay_s=10)
        clock.advance(14)
        assert value(claim_one(store)) == "b"

    @pytest.mark.parametrize("ended", [False, True])
    def test_what_was_claimed_keeps_its_place_when_it_is_postponed(self, store: Store, clock: FakeClock, ended: bool) -> None:
        postpone(store, "a")
        held = claim(store, lease_s=5)
        clock.advance(5 if ended else 1)
        postpone(store, "b", delay_s=60, if_leased="update")
        settle(store, held, to="ready", return_to="place")
        assert value(claim_one(store)) == "b"

    @pytest.mark.parametrize("end", ENDS)
    def test_a_key_is_put_once_in_its_time_whatever_became_of_the_message(self, store: Store, clock: FakeClock, end: str) -> None:
        assert once(store, "first").created == [True]
        clock.advance(5)
        ENDS[end](store)
        clock.advance(4)
        answer = once(store, "second")
        assert (answer.ids, answer.created) == (["first"], [False])
        with pytest.raises(KeyInFlight):
            once(store, "third", if_recent="reject")
        assert claim(store) == []
        clock.advance(1)
        assert once(store, "fourth").created == [True]
        assert value(claim_one(store)) == "fourth"

    def test_while_the_message_lives_the_policies_of_its_key_decide(self, store: Store) -> None:
        once(store, "first")
        assert once(store, "second", if_recent="reject").created == [False]
        assert value(see(store, "first")) == "second"
        claim(store)
        assert once(store, "copy").created == [True], "it waits behind the one that is claimed"

    def test_only_puts_that_create_a_message_count(self, store: Store, clock: FakeClock) -> None:
        once(store, "first")
        clock.advance(8)
        once(store, "update")
        drain(store)
        once(store, "kept")
        clock.advance(2)
        assert once(store, "second").created == [True]

    def test_a_put_that_does_not_ask_is_not_held_back(self, store: Store) -> None:
        once(store, "first")
        drain(store)
        assert put(store, "second", key=KEY).created == [True]
        assert put(store, "third", key='"other"', unique_for_s=10).created == [True]

    def test_the_keys_of_a_batch_are_told_apart(self, store: Store) -> None:
        batch = [item(f"{number}", key=str(number % 2), unique_for_s=10) for number in range(4)]
        assert store.execute(Put(JOBS, batch)).ids == ["0", "1", "0", "1"]
        assert read(store, dict=RECENT) == {"0": "0", "1": "1"}

    @pytest.mark.parametrize("message_id", ["plain", 'a "quoted" one', "back\\slash", "ü/é", "\N{SNOWMAN}"])
    def test_what_was_put_not_long_ago_is_an_entry_of_a_dict(self, store: Store, message_id: str) -> None:
        once(store, message_id)
        drain(store)
        assert read(store, dict=RECENT) == {KEY: message_id}
        assert once(store, "second").ids == [message_id]
        write(store, KEY, do="delete", dict=RECENT)
        assert once(store, "third").created == [True]

    def test_a_put_may_name_the_dict_itself(self, store: Store) -> None:
        store.execute(Put(JOBS, [item("first", key=KEY, unique_for_s=10)], recent="shared"))
        answer = store.execute(Put("others", [item("second", key=KEY, unique_for_s=10)], recent="shared"))
        assert (answer.ids, answer.created) == (["first"], [False])

    def test_of_many_producers_one_puts_a_unique_key(self, store: Store) -> None:
        def produce(number: int) -> Callable[[], bool]:
            def act() -> bool:
                created = once(store, f"p{number}").created[0]
                drain(store)
                return created

            return act

        assert sum(together(*[produce(number) for number in range(PRODUCERS)])) == 1


def postpone(store: Store, message_id: str, **options: Any) -> Puts:
    return put(store, message_id, key=KEY, if_ready="postpone", **options)


def once(store: Store, message_id: str, **options: Any) -> Puts:
    """A put of the key, which is unique for ten seconds."""
    return put(store, message_id, key=KEY, unique_for_s=10, **options)
