"""What a watch reads: every change once, in order, or a clear word that events are gone."""

import pytest
from msgspec import json

from holdfast.commands import Browse, Change, Changes, Clear, Configure, Prune, Put, Read, Together, Write
from holdfast.commands.events import OLDEST
from holdfast.errors import Compacted
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import (
    DICT,
    JOBS,
    acquire,
    claim,
    event_names,
    events,
    extend,
    grant,
    item,
    last_event,
    move,
    put,
    raw,
    release,
    renew,
    settle,
    write,
)
from holdfast.testing.conformance.factory import Conformance

QUEUE = f"queue:{JOBS}"
ENTRIES = f"dict:{DICT}"
TWO_MINUTES = 120


class EventConformance(Conformance):
    """One log for queues, dicts and leases; no effect comes before its cause."""

    def test_a_put_is_an_event_with_ids_and_keys_and_no_values(self, store: Store) -> None:
        put(store, "a")
        assert last_event(store) == ("put", {"ids": ["a"]})
        put(store, "b", key='"k"')
        assert last_event(store) == ("put", {"ids": ["b"], "keys": ['"k"']})

    def test_an_update_by_key_is_an_event(self, store: Store) -> None:
        put(store, "a", key='"k"')
        put(store, "b", key='"k"')
        assert last_event(store) == ("put", {"ids": [], "updated": ["a"], "updated_keys": ['"k"']})
        store.execute(Put(JOBS, [item("c"), item("d", key='"k"'), item("e", key='"new"')]))
        assert last_event(store) == ("put", {"ids": ["c", "e"], "keys": [None, '"new"'], "updated": ["a"], "updated_keys": ['"k"']})

    def test_every_event_of_a_message_names_its_key(self, store: Store, clock: FakeClock) -> None:
        put(store, "a", key='"k"')
        settle(store, claim(store), to="ready")
        claim(store, lease_s=1)
        clock.advance(1)
        settle(store, claim(store), to="dead")
        move(store, "ready", ids=["a"])
        settle(store, claim(store))
        put(store, "b", key='"k"', start_within_s=1)
        clock.advance(1)
        put(store, "c", key='"k"')
        found = [(event.event, json.decode(event.data)["keys"]) for event in events(store)]
        names = ["put", "claimed", "settled", "claimed", "expired", "claimed", "settled", "buried", "moved", "claimed", "settled"]
        assert found == [(name, ['"k"']) for name in (*names, "put", "expired", "put")]

    def test_of_several_messages_each_has_its_key_or_none(self, store: Store) -> None:
        put(store, "a")
        put(store, "b", key='"k"')
        settle(store, claim(store, 2))
        assert [json.decode(event.data).get("keys") for event in events(store)] == [None, ['"k"'], [None, '"k"'], [None, '"k"']]

    def test_a_message_buried_elsewhere_is_told_by_the_id_and_key_it_had(self, store: Store) -> None:
        put(store, "a", queue="graves")
        put(store, "a", key='"k"', dead_letter="graves")
        settle(store, claim(store), to="dead")
        assert last_event(store) == ("buried", {"ids": ["a"], "keys": ['"k"'], "dead_letter": "graves"})
        assert last_event(store, "queue:graves") == ("put", {"ids": ["a~2"]})

    def test_a_message_redriven_elsewhere_is_told_there_by_its_key(self, store: Store) -> None:
        put(store, "a", key='"k"', queue="graves")
        move(store, "ready", queue="graves", ids=["a"], to_queue=JOBS)
        assert last_event(store, "queue:graves") == ("moved", {"ids": ["a"], "keys": ['"k"'], "to": "ready"})
        assert last_event(store) == ("put", {"ids": ["a"], "keys": ['"k"']})

    def test_a_put_that_changes_nothing_is_no_event(self, store: Store) -> None:
        put(store, "a")
        put(store, "a")
        assert event_names(store) == ["put"]

    def test_a_claim_is_an_event_with_its_holder_and_its_number_is_the_token(self, store: Store) -> None:
        put(store, "a", "b")
        held = claim(store, 2, holder="me")
        assert last_event(store) == ("claimed", {"ids": ["a", "b"], "holder": "me"})
        assert {message.token for message in held} == {events(store)[-1].index}

    @pytest.mark.parametrize("to", ["done", "ready", "dead"])
    def test_settling_is_an_event_that_says_how(self, store: Store, to: str) -> None:
        put(store, "a")
        settle(store, claim(store), to=to)
        settled = events(store)[2]
        assert (settled.event, json.decode(settled.data)) == ("settled", {"ids": ["a"], "to": to})

    @pytest.mark.parametrize("to", ["ready", "dead"])
    @pytest.mark.parametrize("count", [1, 2])
    def test_settling_a_failure_says_so(self, store: Store, to: str, count: int) -> None:
        put(store, "a", "b")
        held = claim(store, count)
        settle(store, held, to=to, counts=True)
        assert json.decode(events(store)[2].data) == {"ids": [message.id for message in held], "to": to, "failed": True}

    def test_what_is_named_twice_is_told_once(self, store: Store) -> None:
        put(store, "a", "b")
        one, two = claim(store, 2)
        assert settle(store, [one, two, one, one]) == [True, True, False, False]
        assert last_event(store) == ("settled", {"ids": ["a", "b"], "to": "done"})

    def test_a_burial_is_an_event(self, store: Store) -> None:
        put(store, "a")
        settle(store, claim(store), to="dead")
        assert event_names(store) == ["put", "claimed", "settled", "buried"]

    def test_a_burial_elsewhere_is_an_event_of_both_queues(self, store: Store) -> None:
        put(store, "a", dead_letter="graves")
        settle(store, claim(store), to="dead")
        assert last_event(store) == ("buried", {"ids": ["a"], "dead_letter": "graves"})
        assert last_event(store, "queue:graves") == ("put", {"ids": ["a"]})
        assert events(store, "queue:graves")[-1].index > events(store)[-1].index, "an effect must not come before its cause"

    def test_an_expiry_is_written_by_the_command_that_finds_it_before_the_new_claim(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        claim(store, lease_s=1)
        clock.advance(1)
        assert event_names(store) == ["put", "claimed"]
        claim(store)
        assert event_names(store) == ["put", "claimed", "expired", "claimed"]

    def test_moving_is_an_event(self, store: Store) -> None:
        put(store, "a")
        move(store, "gone", ids=["a"])
        assert last_event(store) == ("moved", {"ids": ["a"], "to": "gone"})

    def test_configuring_and_clearing_are_events(self, store: Store) -> None:
        store.execute(Configure("queue", JOBS, paused=True))
        assert last_event(store) == ("configured", {"paused": True, "maxsize": None})
        put(store, "a")
        store.execute(Clear("queue", JOBS, drop=True))
        assert last_event(store) == ("cleared", {"count": 1, "dropped": True})

    def test_every_changed_key_of_a_dict_is_an_event_of_its_own(self, store: Store) -> None:
        store.execute(Write(DICT, [Change("a", value=raw([1])), Change("b", value=raw(2)), Change("c", do="delete")]))
        written = [(event.event, json.decode(event.data)) for event in events(store, ENTRIES)]
        assert written == [("written", {"key": "a", "value": [1]}), ("written", {"key": "b", "value": 2})]
        write(store, "a", do="delete")
        assert last_event(store, ENTRIES) == ("deleted", {"key": "a"})

    def test_leases_of_a_dict_are_events_of_the_dict(self, store: Store, clock: FakeClock) -> None:
        release(store, grant(store, "a", dict=DICT))
        acquire(store, "a", dict=DICT, lease_id="two", lease_s=1)
        clock.advance(1)
        acquire(store, "a", dict=DICT, lease_id="three")
        assert event_names(store, ENTRIES) == ["acquired", "released", "acquired", "expired", "acquired"]
        assert last_event(store, ENTRIES) == ("acquired", {"key": "a", "holder": "me"})

    def test_a_lease_of_a_name_has_a_topic_of_its_own(self, store: Store) -> None:
        release(store, grant(store, "a"))
        assert event_names(store, "lease::a") == ["acquired", "released"]

    def test_the_number_of_the_event_is_the_token_of_the_lease(self, store: Store) -> None:
        assert grant(store, "a").token == events(store, "lease::a")[-1].index

    def test_renewals_looks_and_refusals_are_no_events(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        held = claim(store, lease_s=1)
        extend(store, held)
        clock.advance(60)
        settle(store, held)
        store.execute(Browse(JOBS))
        assert event_names(store) == ["put", "claimed"]
        lease = grant(store, "a")
        renew(store, lease)
        acquire(store, "a", lease_id="two")
        assert event_names(store, "lease::a") == ["acquired"]

    def test_numbers_strictly_grow_over_all_topics(self, store: Store) -> None:
        for number in range(5):
            put(store, str(number))
            put(store, str(number), queue="others")
            write(store, "a", number)
        found = [event.index for topic in (QUEUE, "queue:others", ENTRIES) for event in events(store, topic)]
        assert len(found) == len(set(found)) == 15
        for topic in (QUEUE, "queue:others", ENTRIES):
            indexes = [event.index for event in events(store, topic)]
            assert indexes == sorted(indexes)

    def test_an_event_says_when(self, store: Store, clock: FakeClock) -> None:
        clock.advance(5)
        put(store, "a")
        assert events(store)[0].at == clock.now_us()

    def test_a_watch_goes_on_from_where_it_was(self, store: Store) -> None:
        put(store, "a")
        after = store.execute(Changes(QUEUE)).upto
        assert store.execute(Changes(QUEUE, after)).events == []
        put(store, "b")
        assert [json.decode(event.data)["ids"] for event in events(store, QUEUE, after)] == [["b"]]

    def test_paging_sees_each_event_once(self, store: Store) -> None:
        for number in range(10):
            put(store, str(number))
            put(store, str(number), queue="others")
        seen, after = [], OLDEST
        for _ in range(20):
            page = store.execute(Changes(QUEUE, after, 3))
            seen += [json.decode(event.data)["ids"][0] for event in page.events]
            after = page.upto
        assert seen == [str(number) for number in range(10)]

    def test_a_snapshot_says_where_to_go_on(self, store: Store) -> None:
        put(store, "a")
        write(store, "k", 1)
        browsed, entries = store.execute(Browse(JOBS)), store.execute(Read(DICT))
        put(store, "b")
        write(store, "k", 2)
        assert event_names(store, QUEUE, browsed.index) == ["put"]
        assert event_names(store, ENTRIES, entries.index) == ["written"]

    def test_a_topic_without_events_is_empty(self, store: Store) -> None:
        assert store.execute(Changes("queue:nowhere")).events == []
        assert store.execute(Changes("queue:nowhere", 0)).events == []

    def test_a_number_above_the_newest_is_of_another_store(self, store: Store) -> None:
        put(store, "a")
        newest = events(store)[-1].index
        assert store.execute(Changes(QUEUE, newest)).events == []
        with pytest.raises(Compacted):
            store.execute(Changes(QUEUE, newest + 1))

    def test_a_number_below_the_oldest_is_compacted(self, store: Store, clock: FakeClock) -> None:
        for number in range(5):
            put(store, str(number))
        second = events(store)[1].index
        clock.advance(TWO_MINUTES + 1)
        prune(store, keep=2)
        assert len(events(store)) == 2, "OLDEST begins with the oldest event that is still there"
        with pytest.raises(Compacted):
            store.execute(Changes(QUEUE, second))
        with pytest.raises(Compacted):
            store.execute(Changes(QUEUE, 0))

    def test_the_number_before_the_oldest_event_is_not_compacted(self, store: Store, clock: FakeClock) -> None:
        for number in range(5):
            put(store, str(number))
        third = events(store)[2].index
        clock.advance(TWO_MINUTES + 1)
        prune(store, keep=2)
        assert len(store.execute(Changes(QUEUE, third)).events) == 2

    def test_events_younger_than_two_minutes_are_never_pruned(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        clock.advance(TWO_MINUTES - 1)
        prune(store, keep=0, keep_s=0)
        assert event_names(store) == ["put"]
        clock.advance(2)
        put(store, "b", queue="others")
        prune(store, keep=0, keep_s=0)
        assert event_names(store) == []

    def test_events_are_kept_by_number_for_each_topic(self, store: Store, clock: FakeClock) -> None:
        for number in range(5):
            put(store, str(number), queue="busy")
        put(store, "a", queue="quiet")
        for number in range(5, 10):
            put(store, str(number), queue="busy")
        clock.advance(TWO_MINUTES + 1)
        prune(store, keep=3)
        assert len(events(store, "queue:busy")) == 3
        assert len(events(store, "queue:quiet")) == 1, "a busy topic must not push out the events of a quiet one"

    def test_events_are_kept_by_age(self, store: Store, clock: FakeClock) -> None:
        put(store, "old")
        clock.advance(3_600)
        put(store, "young")
        clock.advance(TWO_MINUTES + 1)
        prune(store, keep_s=1_800)
        assert [json.decode(event.data)["ids"] for event in events(store)] == [["young"]]

    def test_numbers_go_on_growing_after_everything_was_pruned(self, store: Store, clock: FakeClock) -> None:
        put(store, "a")
        newest = events(store)[-1].index
        clock.advance(TWO_MINUTES + 1)
        prune(store, keep=0, keep_s=0)
        put(store, "b")
        assert events(store)[-1].index > newest

    def test_the_events_of_one_step_are_in_the_order_of_its_commands(self, store: Store) -> None:
        store.execute(
            Together([Write(DICT, [Change("a", value=raw(1))]), Configure("queue", JOBS), Write("other", [Change("b", value=raw(1))])])
        )
        found = [events(store, topic)[0].index for topic in (ENTRIES, QUEUE, "dict:other")]
        assert found == sorted(found)

    def test_an_entry_past_its_time_is_told_when_it_is_pruned(self, store: Store, clock: FakeClock) -> None:
        write(store, "a", 1, ttl_s=1)
        clock.advance(2)
        store.execute(Prune())
        assert last_event(store, ENTRIES) == ("expired", {"key": "a"})


def prune(store: Store, **options: float) -> None:
    """Prune, little by little as it may be, until nothing more goes."""
    for _ in range(100):
        if not store.execute(Prune(**options)):  # type: ignore[arg-type]
            return
    raise AssertionError("pruning does not end")
