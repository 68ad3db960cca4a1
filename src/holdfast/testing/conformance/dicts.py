"""Entries of a dict: putting, comparing, incrementing, deleting, reading in pages, and entries that end by themselves."""

from typing import Any

import pytest
from msgspec import Raw, json

from holdfast.codec import encode_key
from holdfast.commands import Change, Clear, Length, Names, Read, Write
from holdfast.errors import Refused
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import DICT, event_names, grant, last_event, raw, read, release, token, write
from holdfast.testing.conformance.factory import Conformance

TOPIC = f"dict:{DICT}"


class DictConformance(Conformance):
    """Each change happens on its own conditions, and says what is in force now."""

    def test_a_value_that_was_put_is_read(self, store: Store) -> None:
        answer = write(store, "a", {"x": [1, None, "ä"]})
        assert answer.written
        assert answer.entry is not None
        assert bytes(answer.entry.value) == bytes(raw({"x": [1, None, "ä"]}))
        assert read(store, "a") == {"a": {"x": [1, None, "ä"]}}

    def test_a_put_replaces(self, store: Store) -> None:
        write(store, "a", 1)
        write(store, "a", 2)
        assert read(store) == {"a": 2}
        assert store.execute(Length(DICT)) == 1

    def test_what_is_not_there_is_left_out(self, store: Store) -> None:
        write(store, "a", 1)
        assert read(store, "b", "a") == {"a": 1}

    def test_entries_asked_for_by_key_come_in_the_order_asked(self, store: Store) -> None:
        store.execute(Write(DICT, [Change(key, value=raw(key)) for key in "abc"]))
        assert list(read(store, "c", "a", "b")) == ["c", "a", "b"]

    def test_a_dict_that_does_not_exist_is_empty(self, store: Store) -> None:
        assert read(store) == {}
        assert store.execute(Length(DICT)) == 0
        assert store.execute(Clear("dict", DICT)) == 0

    def test_several_changes_are_one_step_and_answered_in_order(self, store: Store) -> None:
        write(store, "b", 1)
        changes = [Change("a", value=raw(1)), Change("b", do="delete"), Change("c", do="increment", by=5)]
        answers = store.execute(Write(DICT, changes))
        assert [answer.written for answer in answers] == [True, True, True]
        assert read(store) == {"a": 1, "c": 5}

    def test_a_write_says_for_each_change_whether_it_was_written(self, store: Store) -> None:
        write(store, "a", "old")
        changes = [Change("a", value=raw("new"), expect="absent"), Change("b", value=raw("new"), expect="absent")]
        taken, free = store.execute(Write(DICT, changes))
        assert (taken.written, taken.because, free.written) == (False, "compare", True)
        assert taken.entry is not None
        assert bytes(taken.entry.value) == b'"old"', "the answer shows the entry in force"
        assert read(store) == {"a": "old", "b": "new"}

    def test_all_or_none_writes_nothing_when_one_change_fails(self, store: Store) -> None:
        write(store, "a", "old")
        changes = [Change("b", value=raw(1)), Change("a", value=raw(1), expect="absent")]
        with pytest.raises(Refused):
            store.execute(Write(DICT, changes, all_or_none=True))
        assert read(store) == {"a": "old"}
        assert event_names(store, TOPIC) == ["written"]

    @pytest.mark.parametrize(
        ("expectation", "on_absent", "on_null", "on_value"),
        [
            ({}, True, True, True),
            ({"expect": "absent"}, True, False, False),
            ({"expect": "present"}, False, True, True),
            ({"expect": "null"}, True, True, False),
            ({"expect": "value", "expected": raw(None)}, False, True, False),
            ({"expect": "value", "expected": raw(7)}, False, False, True),
            ({"expect": "value", "expected": raw(7.0)}, False, False, False),
            ({"expect": "value", "expected": raw("7")}, False, False, False),
            ({"expect": "revision", "revision": 0}, True, False, False),
        ],
    )
    @pytest.mark.parametrize("do", ["put", "delete", "increment", "compare"])
    def test_a_change_happens_only_where_its_expectation_is_met(
        self, store: Store, do: str, expectation: dict[str, Any], on_absent: bool, on_null: bool, on_value: bool
    ) -> None:
        for key, found, meets in (("absent", None, on_absent), ("null", raw(None), on_null), ("value", raw(7), on_value)):
            if do == "increment" and key == "null":
                continue
            if found is not None:
                store.execute(Write(DICT, [Change(key, value=found)]))
            before = read(store)
            answer = write(store, key, "new", do=do, **expectation)
            assert answer.written == meets, f"{do} of a key that is {key}"
            new = {"put": "new", "increment": 7 if found else 0, "compare": before.get(key), "delete": None}[do]
            assert read(store).get(key) == (new if meets else before.get(key))

    def test_a_revision_changes_with_every_write(self, store: Store) -> None:
        revisions = []
        for number in range(3):
            answer = write(store, "a", number)
            assert answer.entry is not None
            revisions.append(answer.entry.revision)
        assert revisions == sorted(set(revisions)), f"revisions must strictly grow, and were {revisions}"
        assert not write(store, "a", "x", expect="revision", revision=revisions[0]).written
        assert write(store, "a", "x", expect="revision", revision=revisions[2]).written

    def test_a_revision_is_not_used_again_after_a_delete(self, store: Store) -> None:
        first = write(store, "a", 1).entry
        write(store, "a", do="delete")
        second = write(store, "a", 1).entry
        assert first is not None
        assert second is not None
        assert second.revision > first.revision
        assert not write(store, "a", 2, expect="revision", revision=first.revision).written

    def test_the_revision_of_a_change_is_the_number_of_its_event(self, store: Store) -> None:
        answers = store.execute(Write(DICT, [Change(key, value=raw(1)) for key in "abc"]))
        revisions = [answer.entry.revision for answer in answers if answer.entry]
        assert revisions == [entry.revision for entry in store.execute(Read(DICT)).entries]
        assert store.execute(Read(DICT)).index == revisions[-1]

    def test_deleting_answers_what_was_removed(self, store: Store) -> None:
        write(store, "a", 1)
        removed = write(store, "a", do="delete")
        assert removed.written
        assert removed.entry is not None
        assert bytes(removed.entry.value) == b"1"
        assert write(store, "a", do="delete").entry is None

    def test_deleting_what_is_absent_is_no_event(self, store: Store) -> None:
        assert write(store, "a", do="delete").written
        assert event_names(store, TOPIC) == []

    def test_an_increment_starts_at_nothing_and_keeps_whole_numbers_whole(self, store: Store) -> None:
        for by in (1, 1, 40):
            write(store, "n", do="increment", by=by)
        assert json.encode(read(store)["n"]) == b"42"
        write(store, "n", do="increment", by=0.5)
        assert read(store) == {"n": 42.5}

    @pytest.mark.parametrize("value", ["text", None, True, [1], {"n": 1}])
    def test_what_is_no_number_cannot_be_incremented(self, store: Store, value: object) -> None:
        write(store, "a", value)
        with pytest.raises(Refused):
            write(store, "a", do="increment", by=1)
        assert read(store) == {"a": value}

    def test_a_number_does_not_leave_its_range(self, store: Store) -> None:
        write(store, "a", 1e308)
        with pytest.raises(Refused):
            write(store, "a", do="increment", by=1e308)
        assert read(store) == {"a": 1e308}

    @pytest.mark.parametrize(("edge", "by"), [(2**64 - 1, 1), (-(2**63), -1)])
    def test_a_whole_number_does_not_leave_64_bits(self, store: Store, edge: int, by: int) -> None:
        write(store, "a", edge - by)
        write(store, "a", do="increment", by=by)
        with pytest.raises(Refused):
            write(store, "a", do="increment", by=by)
        with pytest.raises(Refused):
            write(store, "a", do="increment", by=edge)
        assert read(store) == {"a": edge}

    def test_of_two_changes_that_fail_together_the_impossible_one_is_told(self, store: Store) -> None:
        write(store, "text", "none")
        lost = Change("a", value=raw(1), lease="nobody's")
        with pytest.raises(Refused, match="is not a number"):
            store.execute(Write(DICT, [lost, Change("text", do="increment", by=1)], all_or_none=True))

    def test_comparing_writes_nothing(self, store: Store) -> None:
        write(store, "a", 1)
        assert write(store, "a", do="compare", expect="value", expected=raw(1)).written
        assert not write(store, "a", do="compare", expect="absent").written
        assert event_names(store, TOPIC) == ["written"]

    def test_a_change_that_did_not_happen_creates_no_dict(self, store: Store) -> None:
        write(store, "a", 1, expect="present")
        assert store.execute(Names("dict")).settings == []

    def test_keys_are_told_apart_by_type(self, store: Store) -> None:
        keys = [encode_key(key) for key in (1, 1.0, True, "1", None, (1, "a"), (1.0, "a"))]
        for key in keys:
            write(store, key, key)
        assert read(store) == {key: key for key in keys}

    def test_entries_are_read_by_prefix_in_order_of_their_keys(self, store: Store) -> None:
        for key in ("b:2", "a:1", "b:1", "b", "c", "b:10", "B:1", "b%x"):
            write(store, key, key)
        assert list(read(store, prefix="b:")) == ["b:1", "b:10", "b:2"]
        assert list(read(store, prefix="b%")) == ["b%x"]
        assert list(read(store)) == sorted(["b:2", "a:1", "b:1", "b", "c", "b:10", "B:1", "b%x"])

    def test_entries_are_read_page_by_page(self, store: Store) -> None:
        keys = [f"k{number:02}" for number in range(10)]
        store.execute(Write(DICT, [Change(key, value=raw(key)) for key in reversed(keys)]))
        found: list[str] = []
        more = True
        while more:
            page = store.execute(Read(DICT, prefix="k", after=found[-1] if found else None, limit=4))
            found += [entry.key for entry in page.entries]
            more = page.more
        assert found == keys

    def test_a_page_that_ends_where_the_dict_does_says_so(self, store: Store) -> None:
        write(store, "a", 1)
        write(store, "b", 1)
        assert not store.execute(Read(DICT, limit=2)).more

    def test_keys_beyond_the_basic_plane_are_in_order_of_their_code_points(self, store: Store) -> None:
        keys = ["\uffee", "\U0001f600", "z", "ä"]
        for key in keys:
            write(store, key, 1)
        assert list(read(store)) == sorted(keys)

    def test_an_entry_with_a_time_ends_by_itself(self, store: Store, clock: FakeClock) -> None:
        write(store, "a", 1, ttl_s=10)
        write(store, "b", 1)
        clock.advance(9.999999)
        assert read(store, "a") == {"a": 1}
        clock.advance(0.000001)
        assert read(store, "a") == {}
        assert read(store) == {"b": 1}
        assert store.execute(Length(DICT)) == 1

    def test_an_entry_past_its_time_is_absent_to_every_expectation(self, store: Store, clock: FakeClock) -> None:
        write(store, "a", 41, ttl_s=1)
        clock.advance(1)
        assert not write(store, "a", 2, expect="present").written
        assert write(store, "a", do="increment", by=1).written
        assert read(store) == {"a": 1}, "an increment of an entry past its time starts anew"

    def test_a_later_write_sets_the_time_anew(self, store: Store, clock: FakeClock) -> None:
        write(store, "a", 1, ttl_s=10)
        clock.advance(5)
        write(store, "a", 2, ttl_s=10)
        clock.advance(9)
        assert read(store) == {"a": 2}
        write(store, "a", 3)
        clock.advance(1_000)
        assert read(store) == {"a": 3}, "a write without a time has no end"

    def test_clearing_empties_in_one_step_and_keeps_the_dict(self, store: Store) -> None:
        store.execute(Write(DICT, [Change(key, value=raw(1)) for key in "abc"]))
        write(store, "a", 1, dict="other")
        assert store.execute(Clear("dict", DICT)) == 3
        assert read(store) == {}
        assert [settings.name for settings in store.execute(Names("dict")).settings] == ["other", DICT]
        assert read(store, dict="other") == {"a": 1}

    def test_clearing_by_prefix_removes_the_entries_whose_keys_begin_with_it(self, store: Store) -> None:
        store.execute(Write(DICT, [Change(key, value=raw(1)) for key in ("a%", "a%1", "a%2", "a", "ab", "a\U0010ffff", "ä%")]))
        write(store, "a%1", 1, dict="other")
        assert store.execute(Clear("dict", DICT, prefix="a%")) == 3
        assert sorted(read(store)) == ["a", "ab", "a\U0010ffff", "ä%"]
        assert store.execute(Length(DICT)) == 4
        assert read(store, dict="other") == {"a%1": 1}
        assert store.execute(Clear("dict", DICT, prefix="a%")) == 0
        assert store.execute(Clear("dict", DICT, prefix="")) == 4
        assert [settings.name for settings in store.execute(Names("dict")).settings] == ["other", DICT]

    def test_clearing_by_prefix_leaves_leases_and_fences_and_counts_no_ended_entry(self, store: Store, clock: FakeClock) -> None:
        stale, newer = token(store), token(store)
        write(store, "a1", 1, fence=newer)
        write(store, "a2", 2, ttl_s=1)
        lease = grant(store, "a1", dict=DICT)
        clock.advance(1)
        assert store.execute(Clear("dict", DICT, prefix="a")) == 1
        assert last_event(store, TOPIC) == ("cleared", {"count": 1, "dropped": False, "prefix": "a"})
        assert not write(store, "a1", "stale", fence=stale).written
        assert release(store, lease)

    def test_a_dict_that_does_not_exist_is_not_made_by_clearing_a_prefix(self, store: Store) -> None:
        assert store.execute(Clear("dict", DICT, prefix="a")) == 0
        assert store.execute(Names("dict")).settings == []

    def test_dropping_removes_the_dict(self, store: Store) -> None:
        write(store, "a", 1)
        store.execute(Clear("dict", DICT, drop=True))
        assert store.execute(Names("dict")).settings == []
        assert read(store) == {}

    def test_values_come_back_byte_for_byte(self, store: Store) -> None:
        value = Raw(b'{"b":1.0,"a":[1e400,12345678901234567890123],"\\u00e9":"\\ud83d\\ude00"}')
        store.execute(Write(DICT, [Change("a", value=value)]))
        assert bytes(store.execute(Read(DICT)).entries[0].value) == bytes(value)
