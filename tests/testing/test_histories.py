"""The checkers of histories: what is right passes, and each kind of wrong is found."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.testing.histories import Delivery, Settled, leased_violations, stale_settles
from holdfast.testing.linearizability import NEVER_ANSWERED, Operation, is_linearizable, register_step

RIGHT = [
    Delivery("a", "one", 1, since=0, until=10, ending="forgotten", accepted=False),
    Delivery("a", "two", 2, since=10, until=20, ending="done", accepted=True),
    Delivery("b", "one", 3, since=5, until=15, ending="ready", accepted=True),
    Delivery("b", "two", 4, since=6, until=16, ending="done", accepted=True),
]


def test_a_right_history_is_right() -> None:
    assert leased_violations(RIGHT, put={"a", "b"}) == []
    assert leased_violations(RIGHT[:1], put={"a"}, left={"a"}) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([replace(RIGHT[0], until=11), *RIGHT[1:]], "held twice"),
        ([*RIGHT, replace(RIGHT[3], token=5, since=20, ending="forgotten", accepted=False)], "handed out again"),
        ([*RIGHT, replace(RIGHT[3], token=5, since=20)], "was done 2 times"),
        ([RIGHT[0], replace(RIGHT[1], since=-1), *RIGHT[2:]], "given out earlier"),
        ([*RIGHT[:2], replace(RIGHT[2], token=2), RIGHT[3]], "more than one claim"),
        (RIGHT[:3], "b is lost"),
        ([*RIGHT, replace(RIGHT[3], message="c", token=9)], "never put"),
    ],
)
def test_what_a_leased_queue_must_not_do_is_found(wrong: list[Delivery], told: str) -> None:
    found = leased_violations(wrong, put={"a", "b"})
    assert any(told in sentence for sentence in found), found


def test_a_message_that_is_done_and_still_there_is_found() -> None:
    assert any("still there" in sentence for sentence in leased_violations(RIGHT, put={"a", "b"}, left={"b"}))


@pytest.mark.parametrize(
    ("settled", "told"),
    [
        (Settled("a", 1, at=12, accepted=True), "while 2 held it"),
        (Settled("a", 2, at=25, accepted=True), "after its lease had ended"),
        (Settled("a", 9, at=1, accepted=True), "which nobody was given"),
    ],
)
def test_a_stale_settling_that_was_accepted_is_found(settled: Settled, told: str) -> None:
    (sentence,) = stale_settles(RIGHT, [settled])
    assert told in sentence


def test_settlings_that_were_refused_or_in_time_are_right() -> None:
    assert stale_settles(RIGHT, [Settled("a", 1, at=12, accepted=False), Settled("a", 2, at=15, accepted=True)]) == []


def test_a_read_may_see_a_write_that_was_under_way() -> None:
    write, early, late = Operation(0, 10, "put", 1), Operation(1, 2, "read", answer=None), Operation(3, 4, "read", answer=1)
    assert is_linearizable([write, early, late])


def test_a_stale_read_is_found() -> None:
    assert not is_linearizable([Operation(0, 1, "put", 1), Operation(2, 3, "put", 2), Operation(4, 5, "read", answer=1)])


def test_a_read_that_goes_back_in_time_is_found() -> None:
    write, new, old = Operation(0, 10, "put", 1), Operation(1, 2, "read", answer=1), Operation(3, 4, "read", answer=None)
    assert not is_linearizable([write, new, old])


def test_two_that_both_swapped_the_same_value_are_found() -> None:
    assert not is_linearizable([Operation(0, 5, "cas", (None, 1), answer=True), Operation(0, 5, "cas", (None, 2), answer=True)])


def test_an_operation_that_was_never_answered_may_have_happened_or_not() -> None:
    lost = Operation(0, NEVER_ANSWERED, "put", 1)
    assert is_linearizable([lost, Operation(1, 2, "read", answer=None)])
    assert is_linearizable([lost, Operation(1, 2, "read", answer=1)])
    assert not is_linearizable([lost, Operation(1, 2, "read", answer=1), Operation(3, 4, "read", answer=None)])


OPERATIONS = st.builds(
    lambda called, took, what: Operation(called, called + took, *what),
    st.integers(0, 6),
    st.one_of(st.integers(0, 4), st.just(NEVER_ANSWERED)),
    st.one_of(
        st.tuples(st.just("read"), st.none(), st.sampled_from([None, 1, 2])),
        st.tuples(st.just("put"), st.sampled_from([1, 2])),
        st.tuples(st.just("cas"), st.sampled_from([(None, 1), (1, 2), (2, 1)]), st.booleans()),
    ),
)


@given(st.lists(OPERATIONS, max_size=5))
def test_the_search_agrees_with_trying_every_order(history: list[Operation]) -> None:
    assert is_linearizable(history) == any(explains(order) for order in orders(history))


def orders(history: list[Operation]) -> Any:
    """Every order of every history that leaves out some of what was never answered."""
    unknown = [place for place, operation in enumerate(history) if operation.answered == NEVER_ANSWERED]
    for chosen in range(2 ** len(unknown)):
        left_out = {place for bit, place in enumerate(unknown) if chosen >> bit & 1}
        yield from permutations([operation for place, operation in enumerate(history) if place not in left_out])


def explains(order: tuple[Operation, ...]) -> bool:
    state: Any = None
    for place, operation in enumerate(order):
        if any(later.answered < operation.called for later in order[place + 1 :]):
            return False
        is_right, state = register_step(state, operation)
        if not is_right:
            return False
    return True
