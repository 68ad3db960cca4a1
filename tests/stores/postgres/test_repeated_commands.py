"""A command whose answer got lost is asked again under its id: the short ways of put, claim and settle leave enough to answer it."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from holdfast.commands import Claim, Command, Item, Put, Settle
from holdfast.connect import connect
from holdfast.stores.postgres._sync import asking
from holdfast.stores.postgres.calls import answer
from holdfast.stores.postgres.function_names import own
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.retrying import Lost
from holdfast.testing.conformance.asking import JOBS, claim, ids, item, put, stats


@pytest.fixture
def store(postgres_server: str) -> Iterator[PostgresStore]:
    store = connect(postgres_server)
    assert isinstance(store, PostgresStore)
    # The first put to a queue takes the long way.
    put(store, "first")
    store.execute(Settle([message.receipt for message in claim(store)]))
    yield store
    store.close()
    with psycopg.connect(postgres_server) as connection:
        connection.execute("drop schema holdfast cascade")


def ask(store: PostgresStore, command: Command[Any], *, again: bool) -> Any:
    return answer(command, asking.ask(store.caller, lambda: store.calls.call(command, "the-id", again=again)))


def ask_twice(store: PostgresStore, command: Command[Any]) -> Any:
    """The second answer, which has to be the first."""
    first = ask(store, command, again=False)
    assert ask(store, command, again=True) == first
    return first


def test_a_put_asked_again_answers_what_it_created_then(store: PostgresStore) -> None:
    put(store, "there")
    found = ask_twice(store, Put(JOBS, [item("new"), item("there"), item("other"), item("new")]))
    assert (found.ids, found.created) == (["new", "there", "other", "new"], [True, False, True, False])
    assert stats(store).ready == 3


def test_a_put_that_created_nothing_is_remembered_too(store: PostgresStore) -> None:
    put(store, "there")
    command = Put(JOBS, [item("there")])
    assert ask(store, command, again=False).created == [False]
    store.execute(Settle([message.receipt for message in claim(store)]))
    assert ask(store, command, again=True).created == [False]
    assert stats(store).ready == 0


@pytest.mark.parametrize("limit", [1, 3])
def test_a_claim_asked_again_answers_the_messages_it_still_holds(store: PostgresStore, limit: int) -> None:
    put(store, "a", "b", "c", "d")
    command = Claim(JOBS, "me", 60.0, limit)
    held = ask_twice(store, command).messages
    assert ids(held) == ["a", "b", "c"][:limit]
    store.execute(Settle([held[0].receipt]))
    assert ask(store, command, again=True).messages == held[1:]


def test_what_a_claim_took_is_told_again(store: PostgresStore) -> None:
    put(store, "a", "b")
    assert ids(ask_twice(store, Claim(JOBS, "me", limit=2, take=True)).messages) == ["a", "b"]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_settling_asked_again_answers_what_was_held_then(store: PostgresStore, lost: int) -> None:
    put(store, "a", "b", "c")
    held = [message.receipt for message in claim(store, 3)]
    store.execute(Settle(held[:lost]))
    assert ask_twice(store, Settle(held)).held == [False] * lost + [True] * (3 - lost)


def test_a_first_try_that_arrives_after_the_second_is_undone(store: PostgresStore) -> None:
    command = Put(JOBS, [Item("a", item("a").value), Item("b", item("b").value)])
    ask(store, command, again=True)
    store.execute(Settle([message.receipt for message in claim(store, 2)]))
    with pytest.raises(Lost) as undone:
        ask(store, command, again=False)
    assert not undone.value.maybe_applied
    assert stats(store).ready == 0


def test_pruning_forgets_notes_once_they_are_old_and_no_event(store: PostgresStore, postgres_server: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for moment in range(5):
            connection.execute(own("select holdfast.remember(%s, %s, 'null')").encode(), (f"old-{moment}", moment))
        before = connection.execute("select count(*) from holdfast.events where topic <> ''").fetchone()
        connection.execute(own("select holdfast.prune_some()").encode())
        left = connection.execute("select count(*) from holdfast.events where command like 'old-%'").fetchone()
        after = connection.execute("select count(*) from holdfast.events where topic <> ''").fetchone()
    assert (left, after) == ((0,), before)
