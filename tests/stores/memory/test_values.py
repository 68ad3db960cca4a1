"""Values in memory, copied or by reference."""

import pytest
from msgspec import Raw, json

from holdfast.codec import Limits
from holdfast.commands import (
    Browse,
    Change,
    Changes,
    Count,
    Item,
    Put,
    Read,
    Settle,
    Write,
)
from holdfast.commands.topics import key_topic
from holdfast.stores.memory import MemoryStore
from tests.stores.memory.acts import anything, claim, put


def test_a_value_is_copied_out_of_the_buffer_it_was_read_from() -> None:
    buffer = bytearray(b"[1]")
    store = MemoryStore()
    for message_id in ("one", "two"):
        store.execute(Put("jobs", [Item(message_id, Raw(buffer))]))
    store.execute(Write("d", [Change('"k"', value=Raw(buffer))]))
    buffer[1:2] = b"2"
    assert [bytes(message.value) for message in store.execute(Browse("jobs")).messages] == [b"[1]", b"[1]"]
    assert bytes(store.execute(Read("d")).entries[0].value) == b"[1]"


@pytest.mark.parametrize("count", [1, 2])
def test_values_over_the_limit_are_refused_however_many_come(count: int) -> None:
    store = MemoryStore(limits=Limits(value_bytes=10))
    put(store, "first")
    with pytest.raises(ValueError, match="the limit of 10"):
        store.execute(Put("jobs", [Item(str(n), Raw(b"12345678901")) for n in range(count)]))


# By reference


class Key:
    """Hashable, and nothing else."""


KEYS = [0, (), False, None, 1.5, Key(), frozenset({1}), 2**70, "text", b"\xff", ("a", 1)]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: type(key).__name__)
def test_by_reference_any_hashable_is_a_key_and_any_object_a_value(references: MemoryStore, key: object) -> None:
    value = object()
    references.execute(Put("jobs", [Item("a", anything(value), anything(key))]))
    again = references.execute(Put("jobs", [Item("b", anything(value), anything(key))]))
    assert again.created == [key is None]
    first = claim(references)[0]
    assert first.value is value
    assert first.key is key
    references.execute(Put("jobs", [Item("c", anything(value), anything(key))]))
    references.execute(Settle([first.receipt]))
    assert claim(references)[0].key is key


@pytest.mark.parametrize("key", KEYS, ids=lambda key: type(key).__name__)
def test_by_reference_events_can_be_read_and_leave_out_what_may_be_anything(references: MemoryStore, key: object) -> None:
    references.execute(Put("jobs", [Item("a", anything(object()), anything(key))]))
    references.execute(Put("jobs", [Item("b", anything(object())), Item("c", anything(object()))]))
    references.execute(Write("d", [Change('"k"', value=anything(object()))]))
    facts = [json.decode(event.data) for event in references.execute(Changes("queue:jobs")).events]
    assert facts == [{"ids": ["a"]}, {"ids": ["b", "c"]}]
    assert [json.decode(event.data) for event in references.execute(Changes("dict:d")).events] == [{}]


def test_by_reference_an_odd_key_goes_through_copies_burial_and_browsing(references: MemoryStore) -> None:
    for key in (0, Key(), (1, "a")):
        for n in range(2):
            references.execute(Put("jobs", [Item(f"{key}-{n}", anything([]), anything(key), dead_letter="grave")]))
            claim(references, key=anything(key)) if n == 0 else None
    assert len(references.execute(Browse("jobs", state="buffered", limit=2)).messages) == 2
    held = references.execute(Browse("jobs", state="leased")).messages
    references.execute(Settle([message.receipt for message in held], to="dead"))
    assert references.execute(Count("grave")).ready == 3
    assert references.execute(Count("jobs")).ready == 3


def test_equal_keys_share_a_topic_whatever_their_text() -> None:
    assert key_topic("jobs", anything(1)) == key_topic("jobs", anything(True)) != key_topic("jobs", "1")
