"""A caller rests for what its requests do on the event loop in one go, where the body is not short."""

import asyncio
from typing import Any

import pytest
from msgspec import json

from holdfast.server import request_bodies
from holdfast.server.asgi import BODY, Scope
from holdfast.server.auth.callers import KEY, anyone, who_asks
from holdfast.server.load import loop_time
from holdfast.server.load.body_budget import Budget
from holdfast.server.load.loop_time import charge_to, metered
from holdfast.server.namespaces.names import DEFAULT
from holdfast.stores.http.problems import WireError

LONG = json.encode(["x" * request_bodies.SHORT_BYTES])


class Clock:
    """The processor time of the thread, which passes when the test says so."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def thread_time(self) -> float:
        return self.spent_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(loop_time, "time", clock)
    return clock


class Charges(Budget):
    """Notes for what callers are to rest."""

    def __init__(self) -> None:
        super().__init__(lambda: True)
        self.charged: list[float] = []

    def charge(self, whose: str, spent_s: float, times: int = 1, credit_s: float = 0.0) -> None:
        super().charge(whose, spent_s, times, credit_s)
        self.charged.append(round(spent_s, 6))


async def stay() -> None:
    """Be welcome."""


SOMEBODY = anyone("here", DEFAULT, stay, lambda: False, may_copy=False)


async def decoded(budget: Budget, body: bytes, clock: Clock | None = None, spend_s: float = 0.0) -> Any:
    def decode(text: bytes) -> Any:
        if clock is not None:
            clock.spent_s += spend_s
        return json.decode(text)

    scope: Scope = {"headers": [(b"content-type", b"application/json")], KEY: SOMEBODY, BODY: body}
    return await request_bodies.Bodies(budget).decoded(scope, None, decode)  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_each_step_of_a_request_with_a_long_body_is_charged_for_what_it_takes_beyond_the_free_part(clock: Clock) -> None:
    budget = Charges()

    async def work() -> str:
        clock.spent_s += 0.005
        await asyncio.sleep(0)
        clock.spent_s += 0.0005
        await asyncio.sleep(0)
        clock.spent_s += 0.003
        return "done"

    charge_to(budget, "eager")
    assert await asyncio.create_task(metered(work())) == "done"
    assert budget.charged == [0.004, 0.002]


@pytest.mark.anyio
async def test_what_is_metered_can_be_cancelled_before_and_after_it_began(clock: Clock) -> None:
    budget, ended = Charges(), list[str]()

    async def work() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            clock.spent_s += 0.002
            ended.append("ended")

    charge_to(budget, "eager")
    tasks = [asyncio.create_task(metered(work())) for _ in range(2)]
    tasks[0].cancel()
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [True, True]
    assert (ended, budget.charged) == (["ended"], [0.001])


@pytest.mark.anyio
@pytest.mark.parametrize(("body", "charged"), [(LONG, [0.009]), (b"[1]", [])])
async def test_decoding_is_charged_if_the_body_is_not_short(clock: Clock, body: bytes, charged: list[float]) -> None:
    budget = Charges()
    await decoded(budget, body, clock, 0.01)
    assert budget.charged == charged


@pytest.mark.anyio
async def test_while_its_caller_rests_a_long_body_is_refused_undecoded_and_a_short_one_is_not() -> None:
    budget = Charges()
    budget.charge(who_asks(SOMEBODY), 1.0, 60)
    with pytest.raises(WireError, match="delayed other callers"):
        await decoded(budget, LONG)
    assert await decoded(budget, b"[1]") == [1]
