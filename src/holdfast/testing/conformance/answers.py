"""How much one answer brings: pages and claims end before it is too large, and what cannot end before is refused."""

import pytest
from msgspec import Raw

from holdfast.commands import Browse, Change, Changes, Claim, Item, Length, Look, Put, Read, Together, Write
from holdfast.commands.allowance import ANSWER_BYTES
from holdfast.errors import Refused
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.conformance.asking import DICT, JOBS, claim, ids, stats
from holdfast.testing.conformance.factory import Conformance

LARGE = Raw(b'"' + b"x" * (2**20 - 1_000) + b'"')
"""With what stores keep beside it less than 1 MiB."""

MOST = ANSWER_BYTES // 2**20
"""How many of them one answer brings."""

ALL = [f"{number:02}" for number in range(MOST + 1)]


class AnswerConformance(Conformance):
    """Answers are limited in bytes, not only in number."""

    def test_a_page_of_messages_ends_before_it_is_too_large(self, store: Store) -> None:
        put_large(store)
        first = store.execute(Browse(JOBS))
        assert (ids(first.messages), first.after is None) == (ALL[:MOST], False)
        rest = store.execute(Browse(JOBS, after=first.after))
        assert (ids(rest.messages), rest.after) == (ALL[MOST:], None)
        named = store.execute(Browse(JOBS, ids=ALL))
        assert (ids(named.messages), named.more) == (ALL[:MOST], True)
        assert not store.execute(Browse(JOBS, ids=ALL[:MOST])).more

    def test_a_claim_leases_no_more_than_its_answer_brings(self, store: Store, clock: FakeClock) -> None:
        put_large(store)
        assert ids(claim(store, 100)) == ALL[:MOST]
        assert (stats(store).leased, stats(store).ready) == (MOST, len(ALL) - MOST)
        assert ids(claim(store, 100)) == ALL[MOST:]
        clock.advance(31)
        assert ids(claim(store, 100, take=True)) == ALL[:MOST], "what expired comes back in the same step, and is as large"
        assert stats(store).total == len(ALL) - MOST

    def test_a_page_of_entries_or_events_ends_before_it_is_too_large(self, store: Store) -> None:
        write_large(store)
        first = store.execute(Read(DICT))
        assert ([entry.key for entry in first.entries], first.more) == (ALL[:MOST], True)
        rest = store.execute(Read(DICT, after=ALL[MOST - 1]))
        assert ([entry.key for entry in rest.entries], rest.more) == (ALL[MOST:], False)
        named = store.execute(Read(DICT, ALL))
        assert ([entry.key for entry in named.entries], named.more) == (ALL[:MOST], True)
        page = store.execute(Changes(f"dict:{DICT}"))
        assert 0 < len(page.events) <= MOST
        assert (page.upto, page.upto < page.latest) == (page.events[-1].index, True)
        seen, numbers = 0, list[int]()
        while page.events:
            seen += len(page.events)
            numbers += [event.index for event in page.events]
            page = store.execute(Changes(f"dict:{DICT}", page.upto))
        assert (seen, numbers) == (len(ALL), sorted(set(numbers)))

    def test_a_step_whose_answers_are_too_large_changes_nothing(self, store: Store) -> None:
        put_large(store)
        write_large(store)
        page, claim, named = Browse(JOBS, limit=20), Claim(JOBS, limit=20), Read(DICT, ALL)
        for one, other in ((page, page), (claim, named), (named, claim)):
            with pytest.raises(Refused, match="16 MiB"):
                store.execute(Together([one, other]))
        assert stats(store).leased == 0
        claimed, page, entries = store.execute(Together([Claim(JOBS, limit=4), Browse(JOBS, limit=5), Read(DICT, ALL[:6])]))
        assert (len(claimed.messages), len(page.messages), len(entries.entries)) == (4, 5, 6)
        events, _ = store.execute(Together([Changes(f"dict:{DICT}", limit=20), Look(None, ["a"])]))
        assert (0 < len(events.events) <= MOST, events.upto) == (True, events.events[-1].index)

    def test_a_write_that_would_be_answered_with_too_much_changes_nothing(self, store: Store) -> None:
        write_large(store)
        with pytest.raises(Refused, match="16 MiB"):
            store.execute(Write(DICT, [Change(key, "delete") for key in ALL]))
        with pytest.raises(Refused, match="16 MiB"):
            store.execute(Write(DICT, [Change(key, value=Raw(b"1"), expect="absent") for key in ALL]))
        assert store.execute(Length(DICT)) == len(ALL)
        assert all(one.written for one in store.execute(Write(DICT, [Change(key, value=Raw(b"1")) for key in ALL])))


def put_large(store: Store) -> None:
    for start in range(0, len(ALL), MOST):
        store.execute(Put(JOBS, [Item(message_id, LARGE) for message_id in ALL[start : start + MOST]]))


def write_large(store: Store) -> None:
    for start in range(0, len(ALL), MOST):
        store.execute(Write(DICT, [Change(key, value=LARGE) for key in ALL[start : start + MOST]]))
