"""The fast path of a queue in memory do nothing where a command has more to decide."""

import pytest

from holdfast.commands import (
    Browse,
    Clear,
    Configure,
    Count,
    Item,
    Put,
)
from holdfast.errors import Closed
from holdfast.stores.memory import MemoryStore
from tests.stores.memory.acts import anything


def test_a_message_put_without_an_id_has_its_number_and_is_found_by_it(references: MemoryStore) -> None:
    references.execute(Configure("queue", "jobs"))
    fast = references.fast("jobs")
    assert fast.put("x", 1)
    (message,) = references.execute(Browse("jobs", ids=["1"])).messages
    assert (message.id, message.n, message.key) == ("1", 1, "x")
    assert not references.execute(Put("jobs", [Item("1", anything(2))])).created[0], "the id is taken"
    references.execute(Put("jobs", [Item("2", anything(3))]))
    references.execute(Put("jobs", [Item("4", anything(3))]))
    assert fast.put("y", 4) is None, "its number would be an id that somebody gave"
    assert references.execute(Clear("queue", "jobs")) == 3


def test_fast_do_nothing_where_a_command_has_more_to_decide(references: MemoryStore) -> None:
    fast = references.fast("jobs")
    assert fast.put("x", 1) is None, "nobody created the queue"
    references.execute(Configure("queue", "jobs", maxsize=1))
    assert fast.put("x", 1) is None, "it is bounded"
    references.execute(Configure("queue", "jobs", maxsize=None))
    assert fast.put("x", 1)
    assert fast.put("x", 2) is None, "the key is taken"
    references.execute(Configure("queue", "jobs", paused=True))
    assert fast.claim(None, "me", None, "front") is None, "it is paused"


def test_fast_of_a_queue_that_is_gone_do_nothing(references: MemoryStore) -> None:
    references.execute(Configure("queue", "jobs"))
    fast = references.fast("jobs")
    assert fast.put("x", 1)
    message = fast.claim("x", "me", None, "front")
    assert message is not None
    references.execute(Clear("queue", "jobs"))
    assert fast.ack(message) is None
    assert fast.put("x", 1) is None
    anew = references.fast("jobs")
    assert anew.put("x", 1), "after a clear the queue goes on under new ones"
    message = anew.claim("x", "me", None, "front")
    assert message is not None
    references.close()
    assert anew.ack(message) is None
    assert anew.release(message, "back") is None
    assert references.fast("jobs").put("y", 1) is None
    with pytest.raises(Closed):
        references.execute(Count("jobs"))


def test_fast_settle_no_message_that_changed_or_is_of_another_queue(references: MemoryStore) -> None:
    references.execute(Configure("queue", "jobs"))
    fast, elsewhere = references.fast("jobs"), references.fast("elsewhere")
    assert fast.put("x", 1)
    first = fast.claim("x", "me", None, "front")
    assert first is not None
    assert elsewhere.ack(first) is None, "it is of another queue"
    assert elsewhere.release(first, "back") is None
    assert fast.release(first, "back")
    (released,) = references.execute(Browse("jobs", keys=["x"])).messages
    assert fast.ack(released) is None, "nobody holds it"
    assert fast.release(released, "back") is None
    second = fast.claim("x", "me", None, "front")
    assert second is not None
    assert fast.ack(first) is None, "its lease is another"
    assert fast.release(first, "back") is None
    assert fast.ack(second)
    assert fast.ack(second) is None, "it is gone"
