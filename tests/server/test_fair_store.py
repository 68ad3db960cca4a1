"""Callers take turns: whoever asks for much, or very often, keeps others waiting for a few of their requests only."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import Raw

from holdfast.commands import Browse, Command, Count, Filter, Item, Put, Together
from holdfast.commands.request import Request, current
from holdfast.commands.sizes import LONG_BYTES
from holdfast.server.layers import fair as fair_layer
from holdfast.server.layers.fair import REFUSALS, Fair
from holdfast.server.load.body_budget import CREDIT_S, Budget
from holdfast.server.load.fair_store import ACTIVE_S, LARGE_PLACES, PLACES, REST_OF_READER, ROUND, UNNOTICED_S, Active, FairStore, Rounds
from holdfast.stores.http.problems import WireError
from holdfast.stores.memory import MemoryStore
from holdfast.stores.memory.store import AsyncMemoryStore
from holdfast.testing.conformance.asking import item

SMALL, LARGE = Browse("jobs", limit=1), Count("jobs")


class Gate(AsyncMemoryStore):
    """Notes who comes to the store, and answers nobody before it is told to."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.came: list[str] = []
        self.is_open = asyncio.Event()
        self.spend: dict[str, Callable[[], None]] = {}

    async def execute(self, command: Command[Any]) -> Any:
        whose = current.get().whose
        self.came.append(whose)
        if whose in self.spend:
            self.spend[whose]()
        else:
            await self.is_open.wait()
        return await super().execute(command)


class Asking:
    """Callers of one store behind turns, with a clock of the test."""

    def __init__(self) -> None:
        self.now = 0.0
        self.gate = Gate()
        self.active = Active(lambda: self.now)
        self.budget = Budget(lambda: self.active.count > 1, now=lambda: self.now)
        self.store = FairStore(self.gate, self.active, self.budget, lambda: self.now)

    def pass_s(self, seconds: float) -> None:
        self.now += seconds

    async def ask(self, whose: str, command: Command[Any], times: int = 1) -> "list[asyncio.Task[Any]]":
        async def asking() -> Any:
            current.set(Request(whose))
            self.active.see(whose)
            return await self.store.execute(command)

        tasks = [asyncio.create_task(asking()) for _ in range(times)]
        await settled()
        return tasks


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def asking() -> Iterator[Asking]:
    asking = Asking()
    yield asking
    asking.gate.store.close()


@pytest.mark.anyio
@pytest.mark.parametrize(("command", "places"), [(SMALL, PLACES), (LARGE, LARGE_PLACES)])
async def test_a_lone_caller_has_all_places(asking: Asking, command: Command[Any], places: int) -> None:
    tasks = await asking.ask("eager", command, places + 5)
    assert asking.gate.came == ["eager"] * places
    asking.gate.is_open.set()
    await asyncio.gather(*tasks)
    assert asking.gate.came == ["eager"] * (places + 5)


@pytest.mark.anyio
@pytest.mark.parametrize(("command", "places"), [(SMALL, PLACES), (LARGE, LARGE_PLACES)])
async def test_while_there_are_others_a_caller_has_its_part_of_the_places(asking: Asking, command: Command[Any], places: int) -> None:
    await asking.ask("other", SMALL)
    await asking.ask("eager", command, places)
    assert asking.gate.came.count("eager") == places // 2
    late = await asking.ask("other", command, places // 2)
    assert asking.gate.came[-1] == "other", "the eager one left no place"
    asking.gate.is_open.set()
    await asyncio.gather(*late)


@pytest.mark.anyio
async def test_whoever_comes_when_all_places_are_taken_has_the_next(asking: Asking) -> None:
    tasks = await asking.ask("eager", LARGE, LARGE_PLACES + 3)
    tasks += await asking.ask("other", LARGE)
    assert "other" not in asking.gate.came
    asking.gate.is_open.set()
    await asyncio.gather(*tasks)
    assert asking.gate.came.index("other") == LARGE_PLACES


@pytest.mark.anyio
async def test_large_commands_take_no_places_of_small_ones(asking: Asking) -> None:
    await asking.ask("eager", LARGE, LARGE_PLACES + 1)
    await asking.ask("other", SMALL)
    assert asking.gate.came[-1] == "other"


@pytest.mark.anyio
async def test_whoever_leaves_the_line_or_the_place_it_was_given_lets_the_next_in(asking: Asking) -> None:
    tasks = await asking.ask("eager", LARGE, LARGE_PLACES + 2)
    tasks[-1].cancel()
    asking.gate.is_open.set()
    await asyncio.wait(tasks[:1])
    tasks[LARGE_PLACES].cancel()
    await asyncio.wait(tasks)
    asking.gate.is_open.clear()
    asking.gate.came.clear()
    await asking.ask("eager", LARGE, LARGE_PLACES)
    assert len(asking.gate.came) == LARGE_PLACES


@pytest.mark.anyio
async def test_callers_who_leave_together_lose_no_place(asking: Asking) -> None:
    tasks = await asking.ask("Ann", LARGE, LARGE_PLACES + 3)
    for task in tasks:
        task.cancel()
    assert {type(outcome) for outcome in await asyncio.gather(*tasks, return_exceptions=True)} == {asyncio.CancelledError}
    asking.gate.came.clear()
    await asking.ask("Ann", LARGE, LARGE_PLACES)
    assert len(asking.gate.came) == LARGE_PLACES


@pytest.mark.anyio
async def test_whoever_fell_silent_shares_no_longer(asking: Asking) -> None:
    await asking.ask("other", SMALL)
    asking.now += 2 * ACTIVE_S
    await asking.ask("eager", LARGE, LARGE_PLACES)
    assert asking.gate.came.count("eager") == LARGE_PLACES


@pytest.mark.anyio
@pytest.mark.parametrize(
    "command",
    [
        Browse("jobs", limit=1, which=Filter(key_prefix="x")),
        Together([Browse("jobs", limit=1, which=Filter(key_prefix="x"))]),
        Count("jobs"),
        Put("jobs", [item(str(number)) for number in range(101)]),
    ],
    ids=["filter", "step", "count", "put"],
)
async def test_what_may_go_through_a_whole_queue_or_writes_much_is_large(asking: Asking, command: Command[Any]) -> None:
    await asking.ask("eager", command, LARGE_PLACES + 1)
    assert len(asking.gate.came) == LARGE_PLACES


def test_a_step_has_ten_filters_at_most() -> None:
    step = Together([Browse("jobs", limit=1, which=Filter(key_prefix="x"))] * 11)
    with pytest.raises(ValueError, match="a step is about 11,000 items"):
        step.measure(MemoryStore().limits)


@pytest.mark.anyio
async def test_whoever_kept_small_commands_waiting_with_a_large_read_rests_for_long(asking: Asking) -> None:
    asking.gate.spend["eager"] = lambda: asking.pass_s(0.11)
    await asking.ask("other", SMALL)
    (first,) = await asking.ask("eager", LARGE)
    assert first.done()
    (second,) = await asking.ask("eager", LARGE)
    with pytest.raises(WireError, match="delayed other callers") as refused:
        await second
    assert refused.value.headers[0] == (b"retry-after", b"20")
    asking.pass_s(0.1 * REST_OF_READER - CREDIT_S)
    asking.active.see("other")
    await asking.ask("eager", LARGE)
    assert asking.gate.came.count("eager") == 2


@pytest.mark.anyio
@pytest.mark.parametrize(("times", "pause_s", "rests"), [(50, UNNOTICED_S, False), (1, 0.5, True)])
async def test_a_large_read_costs_no_rest_only_if_small_commands_are_answered_all_the_time_beside_it(
    asking: Asking, times: int, pause_s: float, *, rests: bool
) -> None:
    asking.gate.spend["quick"] = lambda: None
    await asking.ask("other", SMALL)
    eager = await asking.ask("eager", LARGE)
    for _ in range(times):
        asking.pass_s(pause_s)
        await asking.ask("quick", SMALL)
    asking.gate.is_open.set()
    await asyncio.gather(*eager)
    (again,) = await asyncio.gather(*await asking.ask("eager", LARGE), return_exceptions=True)
    assert isinstance(again, WireError) == rests


@pytest.mark.anyio
@pytest.mark.parametrize(("size", "rests"), [(LONG_BYTES, True), (10, False)])
async def test_whoever_kept_others_waiting_with_a_long_answer_rests_and_may_read_a_little(
    asking: Asking, size: int, *, rests: bool
) -> None:
    asking.gate.store.execute(Put("jobs", [Item(name, Raw(b'"%s"' % (b"x" * (size - 2)))) for name in "ab"]))
    asking.gate.spend["eager"] = lambda: asking.pass_s(0.11)
    await asking.ask("other", SMALL)
    await asyncio.gather(*await asking.ask("eager", Browse("jobs", limit=2)))
    (again,) = await asyncio.gather(*await asking.ask("eager", Browse("jobs", limit=2)), return_exceptions=True)
    assert isinstance(again, WireError) == rests
    (little,) = await asyncio.gather(*await asking.ask("eager", SMALL))
    assert len(little.messages) == 1


@pytest.mark.anyio
async def test_a_large_read_that_keeps_others_waiting_now_and_then_costs_no_rest(asking: Asking) -> None:
    asking.gate.spend["seldom"] = lambda: asking.pass_s(UNNOTICED_S + CREDIT_S / REST_OF_READER)
    await asking.ask("other", SMALL)
    for number in range(5):
        asking.active.see("other")
        (read,) = await asking.ask("seldom", LARGE)
        assert read.done(), number
        asking.pass_s(CREDIT_S)


@pytest.mark.anyio
async def test_a_write_of_few_items_rests_little_for_what_others_waited_beside_it(asking: Asking) -> None:
    asking.gate.spend["writer"] = lambda: asking.pass_s(1.0)
    await asking.ask("other", SMALL)
    for number in range(20):
        asking.active.see("other")
        (written,) = await asking.ask("writer", Put("jobs", [item(f"{number}-{each}") for each in range(101)]))
        assert written.done(), number


@pytest.mark.anyio
async def test_those_in_line_behind_a_large_read_rest_too(asking: Asking) -> None:
    asking.gate.spend["eager"] = lambda: asking.pass_s(0.5)
    await asking.ask("other", SMALL)
    tasks = await asking.ask("eager", LARGE, 5)
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, WireError) for each in done] == [False, True, True, True, True]


class Loop:
    """Requests in the rounds of the event loop."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self._rounds = Rounds(Active(lambda: 0.0))

    def ask(self, whose: str, times: int = 1) -> "list[asyncio.Task[None]]":
        async def enter() -> None:
            if not self._rounds.may_enter(whose):
                await self._rounds.wait(whose)
            self.entered.append(whose)

        return [asyncio.create_task(enter()) for _ in range(times)]


@pytest.mark.anyio
async def test_a_thousand_requests_at_once_let_others_in_after_a_few() -> None:
    loop = Loop()
    tasks = [*loop.ask("other"), *loop.ask("eager", 1_000)]
    await asyncio.sleep(0)
    tasks += loop.ask("other")
    await asyncio.gather(*tasks[-1:])
    assert loop.entered.count("eager") <= 3 * ROUND
    await asyncio.gather(*tasks)
    assert len(loop.entered) == 1_002


@pytest.mark.anyio
async def test_requests_of_a_lone_caller_are_let_in_at_once() -> None:
    loop = Loop()
    loop.ask("eager", 1_000)
    await asyncio.sleep(0)
    assert len(loop.entered) == 1_000


@pytest.mark.anyio
async def test_a_request_that_is_given_up_takes_nobodys_turn() -> None:
    loop = Loop()
    tasks = [*loop.ask("other"), *loop.ask("eager", 3 * ROUND)]
    await asyncio.sleep(0)
    for task in tasks[-2 * ROUND : -ROUND]:
        task.cancel()
    await asyncio.wait(tasks)
    assert loop.entered.count("eager") == 2 * ROUND


async def refuse(*_: Any) -> None:
    raise ValueError("this cannot be right")


async def refused(fair: Fair, whose: str, times: int) -> int:
    """How many of so many requests that are refused get their answer at once."""

    async def ask() -> None:
        current.set(Request(whose))
        await fair({}, None, None)  # type: ignore[arg-type]

    tasks = [asyncio.create_task(ask()) for _ in range(times)]
    for _ in range(times):  # They are let in by rounds.
        await settled()
    answered = sum(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return answered


@pytest.mark.parametrize(("others", "at_once"), [([], REFUSALS + 5), (["b"], REFUSALS)])
def test_answers_to_a_flood_of_mistakes_come_late_while_there_are_others(
    others: list[str], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_layer, "LATE_S", 3_600.0)

    async def flood() -> tuple[int, int]:
        active = Active(lambda: 0.0)
        for other in others:
            active.see(other)
        fair = Fair(refuse, active)
        return await refused(fair, "a", REFUSALS + 5), await refused(fair, "b", 1)

    assert asyncio.run(flood()) == (at_once, 1)
