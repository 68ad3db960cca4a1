"""A worker goes through a strict group in one step a message: what it settles makes room for what it claims in the same step."""

import asyncio
from typing import Any

import pytest

from holdfast._async.handles.queue import AsyncQueue
from holdfast._async.handles.worker import AsyncWorker
from holdfast.client import ControlPlaneClient
from holdfast.commands import Claim, Settle, Together
from holdfast.stores.memory import MemoryStore
from holdfast.stores.memory.store import AsyncMemoryStore

MESSAGES = 200


async def steps_for_each_message(monkeypatch: pytest.MonkeyPatch) -> float:
    """How many claims, settlements and steps of both a worker sends for each message of one group."""
    sent: list[str] = []
    execute: Any = AsyncMemoryStore.execute

    async def counted(store: AsyncMemoryStore, command: Any) -> Any:
        if isinstance(command, Claim | Settle | Together):
            sent.append(type(command).__name__)
        return await execute(store, command)

    async def handle(value: int) -> None:
        done.append(value)

    done: list[int] = []
    async with ControlPlaneClient.on(MemoryStore()) as client:
        queue = AsyncQueue[int]("jobs", client=client)
        await queue.configure(groups="strict")
        await queue.put_many(range(MESSAGES), group="a")
        monkeypatch.setattr(AsyncMemoryStore, "execute", counted)
        await AsyncWorker(handle, "jobs", client=client).run(until_empty=True, signals=False)
    assert done == list(range(MESSAGES))
    return len(sent) / MESSAGES


def test_a_strict_group_takes_one_step_for_each_message(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asyncio.run(steps_for_each_message(monkeypatch)) <= 1.1


def test_control_a_claim_that_does_not_see_what_its_step_freed_takes_two(monkeypatch: pytest.MonkeyPatch) -> None:
    def claims_first(_: Together, tx: Any, plan: list[tuple[Any, Any]]) -> list[Any]:
        order = sorted(range(len(plan)), key=lambda place: not isinstance(plan[place][0], Claim))
        answers = {place: plan[place][0].write(tx, plan[place][1]) for place in order}
        return [answers[place] for place in range(len(plan))]

    monkeypatch.setattr(Together, "write", claims_first)
    assert asyncio.run(steps_for_each_message(monkeypatch)) >= 1.9
