"""How many messages a queue takes, and stopping one for a while."""

import pytest

from holdfast.commands import Claim, Clear, Configure, Names, Put
from holdfast.errors import QueueFull
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import JOBS, claim, drain, event_names, ids, item, move, put, settle, stats
from holdfast.testing.conformance.factory import Conformance


class RoomConformance(Conformance):
    """`maxsize` counts what is ready, also ahead in time; what comes back by release, expiry or redrive always finds room."""

    def test_a_full_queue_refuses_a_put_and_keeps_nothing_of_it(self, store: Store) -> None:
        limit(store, 2)
        put(store, "a")
        with pytest.raises(QueueFull):
            put(store, "b", "c")
        assert drain(store) == ["a"]
        assert event_names(store)[1] == "put"

    def test_a_queue_can_be_filled_to_its_last_place(self, store: Store) -> None:
        limit(store, 2)
        put(store, "a", "b")
        with pytest.raises(QueueFull):
            put(store, "c")

    def test_delayed_messages_take_room(self, store: Store) -> None:
        limit(store, 1)
        put(store, "a", delay_s=60)
        with pytest.raises(QueueFull):
            put(store, "b")

    def test_a_claim_and_a_take_make_room(self, store: Store) -> None:
        limit(store, 2)
        put(store, "a", "b")
        claim(store)
        put(store, "c")
        claim(store, take=True)
        put(store, "d")
        with pytest.raises(QueueFull):
            put(store, "e")

    def test_a_release_is_never_refused_and_counts(self, store: Store) -> None:
        limit(store, 1)
        put(store, "a")
        held = claim(store)
        put(store, "b")
        assert settle(store, held, to="ready") == [True]
        claim(store)
        with pytest.raises(QueueFull):
            put(store, "c")

    def test_an_expiry_is_never_refused_and_counts(self, store: Store, clock: FakeClock) -> None:
        limit(store, 2)
        put(store, "a", "b")
        claim(store, 2, lease_s=1)
        clock.advance(1)
        put(store, "c", "d")
        claim(store)
        with pytest.raises(QueueFull):
            put(store, "e")
        assert len(drain(store)) == 3

    def test_a_redrive_is_never_refused_and_counts(self, store: Store) -> None:
        limit(store, 1)
        put(store, "a")
        settle(store, claim(store), to="dead")
        put(store, "b")
        assert move(store, "ready") == ["a"]
        claim(store)
        with pytest.raises(QueueFull):
            put(store, "c")

    def test_a_removed_message_makes_room(self, store: Store) -> None:
        limit(store, 1)
        put(store, "a")
        move(store, "gone", ids=["a"])
        put(store, "b")

    def test_a_buried_message_makes_room(self, store: Store) -> None:
        limit(store, 1)
        put(store, "a")
        move(store, "dead", ids=["a"])
        put(store, "b")
        assert stats(store).dead == 1

    def test_what_was_not_started_in_time_makes_room(self, store: Store, clock: FakeClock) -> None:
        limit(store, 1)
        put(store, "late", start_within_s=1)
        clock.advance(1)
        assert claim(store) == []
        put(store, "b")
        assert drain(store) == ["b"]

    def test_an_emptied_queue_has_all_its_room(self, store: Store) -> None:
        limit(store, 2)
        put(store, "a", "b")
        store.execute(Clear("queue", JOBS))
        put(store, "c", "d")
        with pytest.raises(QueueFull):
            put(store, "e")

    def test_a_copy_takes_no_room_until_it_is_ready(self, store: Store) -> None:
        limit(store, 1)
        put(store, "a", key='"k"')
        held = claim(store)
        put(store, "copy", key='"k"')
        put(store, "b")
        settle(store, held)
        claim(store)
        with pytest.raises(QueueFull):
            put(store, "c")

    def test_an_update_of_a_key_takes_no_room(self, store: Store) -> None:
        limit(store, 1)
        put(store, "a", key='"k"')
        assert put(store, "b", key='"k"').created == [False]

    def test_a_dead_letter_is_never_refused_by_a_full_queue_and_counts(self, store: Store) -> None:
        limit(store, 1, queue="graves")
        put(store, "there", queue="graves")
        put(store, "a", max_attempts=1, dead_letter="graves")
        settle(store, claim(store), to="ready", counts=True)
        claim(store, queue="graves")
        with pytest.raises(QueueFull):
            put(store, "b", queue="graves")

    def test_a_limit_set_later_counts_what_is_there(self, store: Store) -> None:
        put(store, "a", "b", "c")
        claim(store)
        limit(store, 2)
        with pytest.raises(QueueFull):
            put(store, "d")

    def test_a_limit_below_what_is_there_removes_nothing(self, store: Store) -> None:
        put(store, "a", "b", "c")
        limit(store, 1)
        claim(store, 2)
        with pytest.raises(QueueFull):
            put(store, "d")
        claim(store)
        put(store, "d")

    def test_a_limit_can_be_lifted(self, store: Store) -> None:
        limit(store, 1)
        put(store, "a")
        store.execute(Configure("queue", JOBS, maxsize=None))
        put(store, "b", "c")
        assert drain(store) == ["a", "b", "c"]

    def test_a_paused_queue_takes_puts_and_hands_out_nothing(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        store.execute(Configure("queue", JOBS, paused=True))
        put(store, "b")
        assert claim(store, 10) == []
        assert claim(store, key='"k"') == []
        assert store.execute(Claim(JOBS)).due_in_s is None, "time alone does not resume a queue"
        store.execute(Configure("queue", JOBS, paused=False))
        assert drain(store) == ["a", "b"]

    def test_what_is_held_while_a_queue_is_paused_can_be_settled(self, store: Store) -> None:
        put(store, "a", "b")
        held = claim(store, 2)
        store.execute(Configure("queue", JOBS, paused=True))
        assert settle(store, held[:1]) == [True]
        assert settle(store, held[1:], to="ready") == [True]
        assert stats(store).ready == 1

    def test_settings_that_are_not_named_stay(self, store: Store) -> None:
        limit(store, 5)
        store.execute(Configure("queue", JOBS, paused=True))
        settings = store.execute(Configure("queue", JOBS))
        assert (settings.maxsize, settings.paused) == (5, True)

    def test_creating_again_empties_nothing_and_is_no_event(self, store: Store) -> None:
        store.execute(Configure("queue", JOBS))
        put(store, "a")
        store.execute(Configure("queue", JOBS))
        assert drain(store) == ["a"]
        assert event_names(store).count("configured") == 1

    def test_what_was_created_is_listed_and_what_was_dropped_is_not(self, store: Store) -> None:
        for name in ("b", "c", "a"):
            store.execute(Configure("queue", name))
        put(store, "m", queue="by-a-put")
        store.execute(Configure("dict", "no queue"))
        store.execute(Clear("queue", "c", drop=True))
        assert listed(store) == ["a", "b", "by-a-put"]
        store.execute(Clear("queue", "b"))
        assert listed(store) == ["a", "b", "by-a-put"]

    @pytest.mark.parametrize("last", ["a", "\ud7ff", "\U0010ffff"])
    def test_a_prefix_may_end_in_any_character(self, store: Store, last: str) -> None:
        names = [f"x{last}", f"x{last}\U0010ffff", f"x{last}a"]
        for name in ["x", *names, "x\ue000", "xb", "y"]:
            store.execute(Configure("queue", name))
        assert [settings.name for settings in store.execute(Names("queue", prefix=f"x{last}")).settings] == sorted(names)

    def test_names_are_listed_by_prefix_and_page_by_page(self, store: Store) -> None:
        for name in ("a:1", "b:1", "b:2", "b:3", "b%", "c"):
            store.execute(Configure("queue", name))
        first = store.execute(Names("queue", "b:", limit=2))
        assert ([settings.name for settings in first.settings], first.more) == (["b:1", "b:2"], True)
        rest = store.execute(Names("queue", "b:", after="b:2", limit=2))
        assert ([settings.name for settings in rest.settings], rest.more) == (["b:3"], False)
        assert [settings.name for settings in store.execute(Names("queue", "b%")).settings] == ["b%"]

    def test_looking_at_a_queue_does_not_create_it(self, store: Store) -> None:
        assert claim(store) == []
        assert stats(store).total == 0
        assert settle(store, []) == []
        assert listed(store) == []

    def test_ids_are_unique_within_a_queue_and_not_beyond(self, store: Store) -> None:
        assert put(store, "a").created == [True]
        assert put(store, "a", queue="others").created == [True]
        assert (drain(store), drain(store, "others")) == (["a"], ["a"])

    @pytest.mark.parametrize("state", ["ready", "leased", "dead"])
    def test_a_put_under_an_id_that_exists_changes_nothing(self, store: Store, state: str) -> None:
        put(store, "a")
        held = claim(store) if state != "ready" else []
        if state == "dead":
            settle(store, held, to="dead")
        answer = store.execute(Put(JOBS, [item("a", "another value", priority=9), item("b")]))
        assert (answer.ids, answer.created) == (["a", "b"], [False, True])
        if state == "leased":
            settle(store, held, to="ready", return_to="place")
        if state == "dead":
            move(store, "ready")
        assert sorted((m.id, bytes(m.value)) for m in claim(store, 5)) == [("a", b'"a"'), ("b", b'"b"')]

    def test_an_id_given_twice_in_a_batch_is_put_once(self, store: Store) -> None:
        assert put(store, "a", "a").created == [True, False]
        assert ids(claim(store, 5)) == ["a"]


def limit(store: Store, maxsize: int, queue: str = JOBS) -> None:
    store.execute(Configure("queue", queue, maxsize=maxsize))


def listed(store: Store) -> list[str]:
    return [settings.name for settings in store.execute(Names("queue")).settings]
