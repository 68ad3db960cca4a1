"""Commands that share a commit are carried out together where they are alike, and as if each were alone where they are not."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import Browse, Changes, Claim, Configure, Held, Item, Put, Puts, Settle
from holdfast.errors import ClaimLost, QueueFull
from holdfast.records import Receipt
from holdfast.stores.group_commit import Job
from holdfast.stores.sqlite.store import SqliteStore


def put(message_id: str, queue: str = "jobs", command_id: str = "") -> Job:
    return Job(Put(queue, [Item(message_id, Raw(b"1"))], id=command_id))


def claim(command_id: str = "", queue: str = "jobs") -> Job:
    return Job(Claim(queue, "me", 60.0, id=command_id))


def settle(receipt: Receipt, command_id: str = "", *, strict: bool = False) -> Job:
    return Job(Settle([receipt], all_or_none=strict, id=command_id))


def run(store: SqliteStore, *jobs: Job) -> list[Any]:
    store.run(list(jobs))
    return [job.result() for job in jobs]


def claimed(store: SqliteStore, *ids: str) -> list[Receipt]:
    """Claims on messages of these ids."""
    run(store, *map(put, ids))
    return [message.receipt for message in store.execute(Claim("jobs", "me", 60.0, limit=len(ids))).messages]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    opened = SqliteStore(tmp_path / "store.db", durability="process")
    opened.execute(Configure("queue", "jobs"))
    return opened


def test_puts_of_one_commit_keep_their_order_and_have_an_event_each(store: SqliteStore) -> None:
    jobs = [put(name) for name in "abcd"]
    store.run(jobs)
    assert [job.result() for job in jobs] == [Puts([name], [True]) for name in "abcd"]
    assert [message.id for message in store.execute(Browse("jobs")).messages] == ["a", "b", "c", "d"]
    told = [bytes(event.data) for event in store.execute(Changes("queue:jobs")).events if event.event == "put"]
    assert told == [b'{"ids":["a"]}', b'{"ids":["b"]}', b'{"ids":["c"]}', b'{"ids":["d"]}']
    store.close()


def test_many_puts_of_one_commit_keep_their_order_and_are_answered_again(store: SqliteStore) -> None:
    names = [f"{number:03}" for number in range(181)]
    answers = run(store, *(put(name, command_id=f"put {name}") for name in names))
    assert answers == run(store, *(put(name, command_id=f"put {name}") for name in names))
    assert [message.id for message in store.execute(Browse("jobs", limit=500)).messages] == names
    events = [event for event in store.execute(Changes("queue:jobs", limit=500)).events if event.event == "put"]
    assert [bytes(event.data) for event in events] == [b'{"ids":["%s"]}' % name.encode() for name in names]
    store.close()


def test_an_id_that_is_taken_is_told_to_its_own_caller(store: SqliteStore) -> None:
    store.execute(Put("jobs", [Item("b", Raw(b"0"))]))
    jobs = [put("a"), put("b"), put("c"), put("a")]
    store.run(jobs)
    assert [job.result().created for job in jobs] == [[True], [False], [True], [False]]
    assert [message.id for message in store.execute(Browse("jobs")).messages] == ["b", "a", "c"]
    store.close()


def test_a_queue_that_fills_up_refuses_those_who_come_too_late(store: SqliteStore) -> None:
    store.execute(Configure("queue", "jobs", maxsize=2))
    jobs = [put("a"), put("b"), put("c")]
    store.run(jobs)
    assert [job.result().created for job in jobs[:2]] == [[True], [True]]
    with pytest.raises(QueueFull):
        jobs[2].result()
    store.close()


def test_puts_into_new_queues_create_them(store: SqliteStore) -> None:
    jobs = [put("a", "new"), put("b", "new"), put("c", "newer")]
    store.run(jobs)
    assert [job.result().created for job in jobs] == [[True]] * 3
    assert [message.id for message in store.execute(Browse("new")).messages] == ["a", "b"]
    store.close()


def test_a_put_that_repeats_another_of_its_commit_or_of_an_earlier_one_is_answered_and_not_applied(store: SqliteStore) -> None:
    first = run(store, put("a", command_id="1"), put("b", command_id="2"))
    again = run(store, put("a", command_id="1"), put("c", command_id="3"), put("c", command_id="3"), put("d", command_id="4"))
    assert first == [Puts(["a"], [True]), Puts(["b"], [True])]
    assert [answer.created for answer in again] == [[True]] * 4
    assert [message.id for message in store.execute(Browse("jobs")).messages] == ["a", "b", "c", "d"]
    store.close()


def test_claims_of_one_commit_get_a_message_and_a_token_each_which_is_the_number_of_their_event(store: SqliteStore) -> None:
    run(store, *map(put, "abc"))
    answers = run(store, claim("1"), claim("2"), claim("3"))
    messages = [message for answer in answers for message in answer.messages]
    assert [(message.id, message.state, message.attempts, message.holder) for message in messages] == [
        (name, "leased", 1, "me") for name in "abc"
    ]
    told = [(event.index, bytes(event.data)) for event in store.execute(Changes("queue:jobs")).events if event.event == "claimed"]
    assert told == [(message.token, b'{"ids":["%s"],"holder":"me"}' % message.id.encode()) for message in messages]
    assert store.execute(Browse("jobs", state="leased")).messages == messages
    store.close()


def test_a_claim_that_repeats_another_of_its_commit_or_of_an_earlier_one_gets_the_same_message(store: SqliteStore) -> None:
    run(store, *map(put, "abcd"))
    first = run(store, claim("1"), claim("2"), claim("2"))
    again = run(store, claim("1"), claim("3"), claim("4"))
    assert [answer.messages[0].id for answer in first] == ["a", "b", "b"]
    assert [answer.messages[0].id for answer in again] == ["a", "c", "d"]
    assert again[0].messages == first[0].messages
    store.close()


def test_more_claims_than_messages_leave_the_last_empty_handed(store: SqliteStore) -> None:
    run(store, *map(put, "ab"))
    answers = run(store, claim("1"), claim("2"), claim("3"), claim("4", "other"))
    assert [[message.id for message in answer.messages] for answer in answers] == [["a"], ["b"], [], []]
    store.close()


def test_claims_of_a_paused_queue_get_nothing(store: SqliteStore) -> None:
    run(store, *map(put, "ab"))
    store.execute(Configure("queue", "jobs", paused=True))
    assert [answer.messages for answer in run(store, claim(), claim())] == [[], []]
    store.close()


def test_claims_of_one_commit_take_the_higher_priority_first(store: SqliteStore) -> None:
    store.execute(Put("jobs", [Item("low", Raw(b"1")), Item("high", Raw(b"1"), priority=1)]))
    assert [answer.messages[0].id for answer in run(store, claim(), claim())] == ["high", "low"]
    store.close()


def test_of_settlements_of_one_commit_each_hears_of_its_own_claim(store: SqliteStore) -> None:
    a, b, c = claimed(store, "a", "b", "c")
    stale = Receipt("jobs", "c", c.token - 1)
    answers = run(store, settle(a, "1"), settle(a, "2"), settle(stale, "3"), settle(b, "4"), settle(a, "1"))
    assert answers == [Held([True]), Held([False]), Held([False]), Held([True]), Held([True])]
    assert [message.id for message in store.execute(Browse("jobs", state="leased")).messages] == ["c"]
    told = [bytes(event.data) for event in store.execute(Changes("queue:jobs")).events if event.event == "settled"]
    assert told == [b'{"ids":["a"],"to":"done"}', b'{"ids":["b"],"to":"done"}']
    store.close()


def test_a_lost_claim_is_refused_to_whoever_wants_all_or_none_and_to_nobody_else(store: SqliteStore) -> None:
    a, b = claimed(store, "a", "b")
    lost = settle(Receipt("jobs", "b", b.token - 1), "1", strict=True)
    kept = [settle(a, "2", strict=True), settle(b, "3", strict=True)]
    store.run([lost, *kept])
    assert [job.result() for job in kept] == [Held([True])] * 2
    with pytest.raises(ClaimLost):
        lost.result()
    store.close()


def test_a_copy_behind_a_key_is_claimable_once_the_first_is_settled_beside_others(store: SqliteStore) -> None:
    plain, keyed = claimed(store, "a")[0], Item("first", Raw(b"1"), key="k")
    store.execute(Put("jobs", [keyed]))
    held = store.execute(Claim("jobs", "me", 60.0)).messages[0].receipt
    store.execute(Put("jobs", [Item("copy", Raw(b"2"), key="k")]))
    assert run(store, settle(held, "1"), settle(plain, "2"), claim("3"))[:2] == [Held([True])] * 2
    left = [*store.execute(Browse("jobs")).messages, *store.execute(Browse("jobs", state="leased")).messages]
    assert [message.id for message in left] == ["copy"]
    store.close()


def test_a_message_whose_value_lies_apart_is_claimed_and_settled_beside_others(store: SqliteStore) -> None:
    large = Raw(b'"%s"' % (b"x" * 10_000))
    store.execute(Put("jobs", [Item("large", large), Item("small", Raw(b"1"))]))
    messages = [answer.messages[0] for answer in run(store, claim("1"), claim("2"))]
    assert [bytes(message.value) for message in messages] == [bytes(large), b"1"]
    assert run(store, *(settle(message.receipt) for message in messages)) == [Held([True])] * 2
    store.execute(Put("jobs", [Item("next", Raw(b"2"))]))
    assert bytes(run(store, claim(), claim())[0].messages[0].value) == b"2"
    store.close()


def test_messages_that_carry_more_than_a_value_are_claimed_with_it(store: SqliteStore) -> None:
    store.execute(Put("jobs", [Item(name, Raw(b"1"), metadata=Raw(b'{"by":"%s"}' % name.encode())) for name in "ab"]))
    messages = [answer.messages[0] for answer in run(store, claim(), claim())]
    assert [bytes(message.metadata or b"") for message in messages] == [b'{"by":"a"}', b'{"by":"b"}']
    store.close()
