"""Trying a command again over a wire."""

import asyncio

import pytest

from holdfast.backoff import Backoff
from holdfast.commands import Claim, Names, Put
from holdfast.commands.events import RETRY_S
from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.stores.retrying import Lost, Patience, Tries, named, retry, retry_async
from holdfast.testing.conformance.asking import JOBS, item

STEADY = Patience(most_s=60.0, backoff=Backoff(first_s=10.0, factor=1.0, jitter=0.0, most_s=10.0))


class Wire:
    """Fails in the ways it is told, one a try, then answers; its pauses pass at once on a clock of its own."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.now = 0.0
        self.tried = 0

    def tries(self) -> Tries:
        return Tries(STEADY, lambda: self.now)

    def attempt(self) -> str:
        self.tried += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def attempt_async(self) -> str:
        return self.attempt()

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)

    def ask(self) -> str:
        return retry(self.attempt, self.tries(), self.sleep)


def cut(*, maybe_applied: bool = True) -> Lost:
    return Lost("the connection was cut", maybe_applied=maybe_applied)


def test_what_was_lost_is_tried_again_after_a_pause() -> None:
    wire = Wire(cut(), cut())
    assert (wire.ask(), wire.tried, wire.now) == ("answer", 3, 20.0)


def test_a_command_is_sent_for_half_as_long_as_its_answer_is_kept_so_a_copy_may_travel_for_the_other_half() -> None:
    assert Patience().most_s * 2 == RETRY_S == 120.0


def test_tasks_try_again_as_threads_do() -> None:
    wire = Wire(cut(), cut())
    answer = asyncio.run(retry_async(wire.attempt_async, wire.tries(), wire.sleep_async))
    assert (answer, wire.tried, wire.now) == ("answer", 3, 20.0)


def test_nothing_is_tried_later_than_a_minute_after_the_first() -> None:
    wire = Wire(*[cut() for _ in range(100)])
    with pytest.raises(OutcomeUnknown, match="may have been applied"):
        wire.ask()
    assert (wire.tried, wire.now) == (7, 60.0)


def test_what_was_never_sent_was_surely_not_applied() -> None:
    wire = Wire(*[cut(maybe_applied=False) for _ in range(100)])
    with pytest.raises(StoreUnavailable, match="nothing was written") as caught:
        wire.ask()
    assert not isinstance(caught.value, OutcomeUnknown)


def test_one_try_that_was_perhaps_applied_leaves_the_outcome_unknown() -> None:
    wire = Wire(cut(), *[cut(maybe_applied=False) for _ in range(100)])
    with pytest.raises(OutcomeUnknown):
        wire.ask()


def test_what_no_other_try_can_mend_is_raised_at_once() -> None:
    wire = Wire(cut(), ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        wire.ask()
    assert wire.tried == 2


def test_a_command_is_named_once_and_what_only_reads_is_not() -> None:
    put = named(Put(JOBS, [item("a")]))
    assert put.id
    assert named(put) is put
    assert named(Claim(JOBS)).id != named(Claim(JOBS)).id
    assert not named(Names("queue")).id
