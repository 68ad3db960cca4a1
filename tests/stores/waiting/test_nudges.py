"""A nudge ends one wait, and nobody else's."""

import math
import threading

import pytest
from msgspec import Raw

from holdfast.commands import Claim, Settle, Together
from holdfast.commands.claim_line import Claimed
from holdfast.commands.settling import Held
from holdfast.records import Message
from holdfast.stores.waiting.waiters import Waiters
from tests.runners import AsyncRunner


def test_a_nudge_ends_the_wait_of_a_thread() -> None:
    waiters = Waiters()
    mark = waiters.mark("topic")
    thread = threading.Thread(target=waiters.wait, args=(mark, math.inf), daemon=True)
    thread.start()
    while not waiters.waiting("topic"):
        pass
    mark.nudge()
    thread.join(60)
    assert not thread.is_alive()


def test_a_nudge_before_the_wait_ends_it_as_it_begins() -> None:
    waiters = Waiters()
    mark = waiters.mark("topic")
    mark.nudge()
    waiters.wait(mark, math.inf)
    mark.nudge()
    waiters.wait(mark, math.inf)


@pytest.mark.anyio
async def test_a_nudge_wakes_one_task_and_leaves_the_hint_to_the_next() -> None:
    waiters = Waiters()
    first, second = waiters.mark("topic"), waiters.mark("topic")
    async with AsyncRunner() as runner:
        nudged = runner.start(waiters.wait_async, first, math.inf)
        await runner.until(lambda: waiters.waiting("topic") == 1)
        hinted = runner.start(waiters.wait_async, second, math.inf)
        await runner.until(lambda: waiters.waiting("topic") == 2)
        first.nudge()
        await nudged.result()
        assert waiters.waiting("topic") == 1
        first.leave()
        assert waiters.waiting("topic") == 1
        waiters.hint("topic")
        await hinted.result()


def test_a_cancelled_step_gives_back_what_it_claimed() -> None:
    message = Message("jobs", "a", Raw(b"1"), token=7)
    step = Together([Settle([message.receipt]), Claim("jobs", "me", 30.0)])
    assert step.undo([Held([True]), Claimed([message])]) == [Settle([message.receipt], "ready", "place")]
    assert step.undo([Held([True]), Claimed([])]) == []


def test_a_cancelled_step_with_two_claims_gives_back_both() -> None:
    messages = [Message(queue, "a", Raw(b"1"), token=7) for queue in ("one", "two")]
    undo = Together([Claim("one"), Claim("two")]).undo([Claimed([message]) for message in messages])
    assert [command.receipts for command in undo if isinstance(command, Settle)] == [[m.receipt] for m in messages]
